"""The discrete mappings by name, and what follows from a mapping's Omega."""

import inspect
from types import ModuleType
from typing import Callable, Dict, NamedTuple, Optional, Tuple, Union

from torch import Tensor

from fairseq_regattn.errors import ArgumentError
from fairseq_regattn.mappings import (
    _entmax,
    _fusedmax,
    _oscarmax,
    _oscarmax_prox,
    _pnormmax,
    _softmax,
    _sparsemax,
)
from fairseq_regattn.mappings._rows import Parameter
from fairseq_regattn.mappings._value import fenchel_young, regularized_max_of


class Mapping(NamedTuple):
    """A mapping for users (`function`), for rows (`solve`), and its Omega if it has one."""

    function: Callable[..., Tensor]
    solve: Callable[..., Tensor]
    omega: Optional[Callable[..., Tensor]]


def _mapping(name: str, module: ModuleType) -> Mapping:
    return Mapping(getattr(module, name), module.solve, getattr(module, "omega", None))


MAPPINGS: Dict[str, Mapping] = {
    "softmax": _mapping("softmax", _softmax),
    "sparsemax": _mapping("sparsemax", _sparsemax),
    "pnormmax": _mapping("pnormmax", _pnormmax),
    "fusedmax": _mapping("fusedmax", _fusedmax),
    "oscarmax": _mapping("oscarmax", _oscarmax),
    "oscarmax_prox": _mapping("oscarmax_prox", _oscarmax_prox),
    "entmax": _mapping("entmax", _entmax),
}


def _with_omega(
    mapping: Union[str, Callable[..., Tensor]], params: Dict[str, Parameter]
) -> Tuple[Callable[..., Tensor], Callable[..., Tensor], Dict[str, Parameter]]:
    """A mapping's `solve` and `omega`, and `params` with its defaults filled in."""
    for name, entry in MAPPINGS.items():
        if (mapping == name or mapping is entry.function) and entry.omega is not None:
            break
    else:
        names = ", ".join(name for name, entry in MAPPINGS.items() if entry.omega is not None)
        raise ArgumentError("mapping", mapping, f"a mapping with a regulariser: {names}")
    signature = inspect.signature(entry.function).parameters.values()
    defaults = {p.name: p.default for p in signature if p.kind is p.KEYWORD_ONLY}
    del defaults["padding_mask"]
    for name in params:
        if name not in defaults:
            raise ArgumentError("parameter", name, f"one of {', '.join(defaults)}")
    return entry.solve, entry.omega, {**defaults, **params}


def regularized_max(
    scores: Tensor,
    mapping: Union[str, Callable[..., Tensor]],
    dim: int = -1,
    *,
    padding_mask: Optional[Tensor] = None,
    **params: Parameter,
) -> Tensor:
    """The smoothed maximum ``max_y <y, scores> - gamma Omega(y)`` over the simplex.

    Its gradient in the scores is the mapping (paper A, equation for max_Omega, section 2).

    Args:
        scores: any shape, floating point.
        mapping: a name, e.g. ``"fusedmax"``, or the function.
        dim, padding_mask: as for the mapping.
        params: gamma (default 1) and what else the mapping takes.

    Returns:
        One value a row: the scores' shape without `dim`; 0 for a fully masked row.

    Raises:
        ArgumentError: also for oscarmax_prox, which is the gradient of no such maximum.
    """
    solve, omega, params = _with_omega(mapping, params)
    return regularized_max_of(solve, omega, scores, dim, padding_mask, **params)


def fenchel_young_loss(
    scores: Tensor,
    target: Tensor,
    mapping: Union[str, Callable[..., Tensor]],
    dim: int = -1,
    *,
    padding_mask: Optional[Tensor] = None,
    **params: Parameter,
) -> Tensor:
    """``max_Omega(scores) + gamma Omega(target) - <target, scores>``, the mapping's own loss.

    At least 0, and 0 exactly where the mapping gives the target; its gradient in the scores
    is ``mapping(scores) - target`` (Blondel, Martins and Niculae, JMLR 2020).

    Args:
        scores: any shape, floating point.
        target: class indices (integers, the scores' shape without `dim`), or
            distributions (the scores' shape). Zero where scores are masked.
        mapping, dim, padding_mask, params: as for :func:`regularized_max`.

    Returns:
        One loss a row, not reduced: the scores' shape without `dim`.

    Raises:
        ArgumentError: a ValueError that names the argument, its value and what is allowed.
    """
    solve, omega, params = _with_omega(mapping, params)
    return fenchel_young(solve, omega, scores, target, dim, padding_mask, **params)
