"""The one table of mappings: a new mapping is covered by every test here by one entry.

Functions are looked up in the package when they are called, so that a test can replace
one with a fault and see that the fault is noticed.
"""

import itertools
from dataclasses import dataclass, field
from typing import Callable, Dict, List, Optional, Tuple

import numpy as np
import torch

from fairseq_regattn import mappings

from . import oracles, qp

GAMMAS = (1.0, 0.3, 2.5)

# name -> values outside its range, each to be refused by name
BAD = {
    "gamma": (0.0, -1.0, float("nan"), float("inf")),
    "lam": (-0.5, float("nan"), float("inf")),
    "p": (1.0, 2.5, 0.0, -1.5, float("nan")),
    "alpha": (1.0, 0.5, -2.0, float("nan"), float("inf")),
}


@dataclass(frozen=True, eq=False)  # compared and hashed by identity
class Mapping:
    """What the tests need to know of a mapping.

    Attributes:
        name: of the function; ``module`` is its twin and ``<name>_loss`` its loss.
        oracle: 1-D array, gamma and parameters -> weights, for any magnitude.
        omega: weights and parameters -> regulariser; None if no such function exists.
        params: each parameter's values to try, the default first.
        program: a second oracle, a general solver.
        symmetric: equivariant to permutations; else to reversal only.
        shift_invariant: unchanged when a constant is added to the scores.
        convexity: parameters -> how strongly convex Omega is in the Euclidean norm.
    """

    name: str
    module: str
    oracle: Callable[..., np.ndarray]
    omega: Optional[Callable[..., float]] = None
    params: Dict[str, Tuple[float, ...]] = field(default_factory=dict)
    program: Optional[Callable[..., np.ndarray]] = None
    symmetric: bool = True
    shift_invariant: bool = True
    convexity: Callable[..., float] = lambda **_: 1.0

    def __call__(self, scores, dim=-1, **kwargs):
        return getattr(mappings, self.name)(scores, dim, **kwargs)

    def loss(self, scores, target, dim=-1, **kwargs):
        return getattr(mappings, f"{self.name}_loss")(scores, target, dim, **kwargs)

    def value(self, scores, dim=-1, **kwargs):
        return mappings.regularized_max(scores, self.name, dim, **kwargs)

    def twin(self, *args, **kwargs):
        return getattr(mappings, self.module)(*args, **kwargs)

    def modulus(self, gamma=1.0, **params) -> float:
        """gamma * Omega is this strongly convex, so the mapping is 1/modulus-Lipschitz."""
        return gamma * self.convexity(**params)

    def settings(self) -> List[Dict[str, float]]:
        """Every combination of gamma and the parameters."""
        names = ("gamma", *self.params)
        values = itertools.product(GAMMAS, *self.params.values())
        return [dict(zip(names, chosen)) for chosen in values]

    def expected(self, scores, gamma=1.0, **params):
        """The oracle for one row of finite scores, as a float64 tensor."""
        return torch.from_numpy(self.oracle(np.asarray(scores, np.float64), gamma, **params))


LAM = (0.1, 0.0, 0.02, 1.0)
LAM_OSCAR = (0.01, 0.0, 0.1, 0.5)

ALL = [
    Mapping("softmax", "Softmax", oracles.softmax, oracles.omega_softmax),
    Mapping("sparsemax", "Sparsemax", oracles.sparsemax, oracles.omega_sparsemax),
    Mapping(
        "pnormmax",
        "PNormMax",
        oracles.pnormmax,
        oracles.omega_pnormmax,
        {"p": (1.5, 1.1, 1.25, 1.9, 2.0)},
        convexity=lambda p: p - 1,
    ),
    Mapping(
        "fusedmax",
        "Fusedmax",
        oracles.fusedmax,
        oracles.omega_fusedmax,
        {"lam": LAM},
        program=qp.fusedmax,
        symmetric=False,
    ),
    Mapping(
        "oscarmax",
        "Oscarmax",
        oracles.oscarmax,
        oracles.omega_oscarmax,
        {"lam": LAM_OSCAR},
        program=qp.oscarmax,
    ),
    Mapping(
        "oscarmax_prox",
        "OscarmaxProx",
        oracles.oscarmax_prox,
        params={"lam": LAM_OSCAR},
        shift_invariant=False,
    ),
    Mapping(
        "entmax",
        "Entmax",
        oracles.entmax,
        oracles.omega_entmax,
        {"alpha": (1.5, 1.05, 1.25, 1.75, 2.0, 2.5)},
        convexity=lambda alpha: float(alpha <= 2),
    ),
]

BY_NAME = {case.name: case for case in ALL}
WITH_OMEGA = [case for case in ALL if case.omega is not None]
WITH_PROGRAM = [case for case in ALL if case.program is not None]
WITH_PARAMS = [(case, name) for case in ALL for name in ("gamma", *case.params)]
STRUCTURED = [case for case in ALL if "lam" in case.params]


def ids(value):
    """Test ids: the mapping's name."""
    return value.name if isinstance(value, Mapping) else None


def random_row(rng, max_length=60):
    """Scores with or without ties, at several scales; half of them on a decimal grid."""
    d = int(rng.integers(1, max_length + 1))
    kind = rng.integers(0, 6)
    x = rng.normal(size=d) * rng.choice([0.3, 1.0, 3.0])
    if kind in (0, 1, 2):
        x = x.round(1)
    if kind == 3:  # plateaus: neighbours tied
        x = np.repeat(x, 3)[:d]
    if kind == 4:  # few values, in any order
        x = rng.choice(x[:3], size=d)
    return x + 0.0  # no negative zeros
