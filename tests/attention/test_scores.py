"""general, dot and mlp against one query and one key at a time."""

import pytest
import torch

from fairseq_regattn.attention import SCORES, Attention, build_mapping
from fairseq_regattn.errors import UsageError

BSZ, QUERIES, LENGTH, QUERY, VALUE = 3, 2, 5, 4, 6


def general(score, value, query):
    return value @ (score.key_projection.weight.t() @ query)


def dot(score, value, query):
    return value @ query


def mlp(score, value, query):
    hidden = score.key_projection.weight @ value + score.key_projection.bias
    hidden = torch.tanh(hidden + score.query_projection.weight @ query)
    return score.output.weight[0] @ hidden


NAIVE = {"general": general, "dot": dot, "mlp": mlp}


def test_all_are_tested():
    assert set(NAIVE) == set(SCORES)


@pytest.mark.parametrize("name", NAIVE)
def test_one_by_one(name):
    value_dim = QUERY if name == "dot" else VALUE
    torch.manual_seed(0)
    score = SCORES[name](QUERY, value_dim).double()
    values = torch.randn(BSZ, LENGTH, value_dim, dtype=torch.float64)
    queries = torch.randn(BSZ, QUERIES, QUERY, dtype=torch.float64)
    scores = score(queries, score.keys(values))
    assert scores.shape == (BSZ, QUERIES, LENGTH)
    for b in range(BSZ):
        for n in range(QUERIES):
            for i in range(LENGTH):
                alone = NAIVE[name](score, values[b, i], queries[b, n])
                torch.testing.assert_close(scores[b, n, i], alone)


def test_dot_of_unequal_sizes_names_both():
    with pytest.raises(UsageError, match=r"got 6 \(encoder\) and 4 \(decoder\)"):
        Attention(QUERY, VALUE, build_mapping("softmax"), score="dot")


def test_an_unknown_score_lists_the_known():
    with pytest.raises(
        UsageError, match=r"--attention-score must be one of general, dot, mlp, got 'cosine'"
    ):
        Attention(QUERY, VALUE, build_mapping("softmax"), score="cosine")
