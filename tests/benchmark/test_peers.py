"""What the benchmarks compare with computes the same weights and gradients as ours."""

import numpy as np
import peers
import pytest
import torch

from fairseq_regattn.mappings import fusedmax, oscarmax_prox, pnormmax


def weights_and_gradient(function, scores):
    scores = scores.clone().requires_grad_()
    weights = function(scores)
    direction = torch.linspace(-1, 1, scores.numel()).view_as(scores).sin()
    return weights.detach(), torch.autograd.grad(weights, scores, direction)[0]


def assert_agree(peer, ours, scores, tolerance):
    for found, expected in zip(
        weights_and_gradient(peer, scores), weights_and_gradient(ours, scores)
    ):
        torch.testing.assert_close(found, expected, rtol=0, atol=tolerance)


@pytest.mark.parametrize("length", [1, 2, 3, 20, 100])
@pytest.mark.parametrize("lam", [0.001, 0.1, 1.0])
@pytest.mark.parametrize(
    ("peer", "ours"),
    [(peers.rowwise_fusedmax, fusedmax), (peers.rowwise_oscarmax, oscarmax_prox)],
)
def test_rowwise(peer, ours, lam, length):
    torch.manual_seed(length)
    scores = torch.randn(20, length)
    assert_agree(lambda s: peer(s, lam=lam), lambda s: ours(s, lam=lam), scores, 1e-5)


def test_condat_with_ties():
    rng = np.random.default_rng(1)
    for _ in range(300):
        scores = torch.from_numpy(rng.integers(-3, 4, (1, rng.integers(1, 12))).astype(float))
        lam = rng.choice([0.25, 0.5, 1.0, 3.0])
        found, expected = peers.rowwise_fusedmax(scores, lam), fusedmax(scores, lam=lam)
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)


def test_fista():
    torch.manual_seed(1)
    scores = torch.randn(10, 8)
    assert_agree(peers.Fista(scores, 1e-6), pnormmax, scores, 1e-5)


def test_fista_keeps_its_word():
    torch.manual_seed(1)
    scores = torch.randn(64, 50)
    exact = pnormmax(scores.double())
    rough, fine = peers.Fista(scores, 1e-2), peers.Fista(scores, 1e-6)
    assert (rough(scores) - exact).abs().max() <= 1e-2
    assert (fine(scores) - exact).abs().max() <= 1.1e-6  # rounded to float32 once more
    assert rough.dtype == torch.float32
    assert rough.iterations < fine.iterations
