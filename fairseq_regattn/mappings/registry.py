"""The discrete mappings by name, and what follows from a mapping's Omega."""

from types import ModuleType
from typing import Callable, Dict, NamedTuple, Optional, Union

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
    name: _mapping(name, module)
    for name, module in (
        ("softmax", _softmax),
        ("sparsemax", _sparsemax),
        ("pnormmax", _pnormmax),
        ("fusedmax", _fusedmax),
        ("oscarmax", _oscarmax),
        ("oscarmax_prox", _oscarmax_prox),
        ("entmax", _entmax),
    )
}


def _with_omega(mapping: Union[str, Callable[..., Tensor]]) -> Mapping:
    known = {**MAPPINGS, **{entry.function: entry for entry in MAPPINGS.values()}}
    entry = known.get(mapping)
    if entry is None or entry.omega is None:
        names = ", ".join(name for name, e in MAPPINGS.items() if e.omega is not None)
        raise ArgumentError("mapping", mapping, f"a mapping with a regulariser: {names}")
    return entry


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
    entry = _with_omega(mapping)
    params = _complete(entry, params)
    return regularized_max_of(entry.solve, entry.omega, scores, dim, padding_mask, **params)


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
    entry = _with_omega(mapping)
    params = _complete(entry, params)
    return fenchel_young(entry.solve, entry.omega, scores, target, dim, padding_mask, **params)


def _complete(entry: Mapping, params: Dict[str, Parameter]) -> Dict[str, Parameter]:
    """Fill in the mapping's defaults; refuse what it does not take."""
    defaults = dict(entry.function.__kwdefaults__)
    del defaults["padding_mask"]
    for name in params:
        if name not in defaults:
            raise ArgumentError("parameter", name, f"one of {', '.join(defaults)}")
    return {**defaults, **params}
