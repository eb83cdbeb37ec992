"""What ``--attention NAME`` can name."""

import inspect
import logging
from typing import Any, Callable, Dict, Optional, Tuple

from torch import Tensor

from fairseq_regattn.errors import ArgumentError, UsageError
from fairseq_regattn.mappings import MAPPINGS
from fairseq_regattn.mappings._rows import check_parameter

logger = logging.getLogger(__name__)

MappingFunction = Callable[..., Tensor]

ATTENTIONS: Dict[str, MappingFunction] = {
    name: mapping.function for name, mapping in MAPPINGS.items()
}

CONTINUOUS = (
    "continuous_softmax",
    "continuous_sparsemax",
    "continuous_biweight",
    "continuous_triweight",
)
"""Names that are no mappings of scores: :mod:`fairseq_regattn.attention.continuous`."""

_FLAGS = {
    "gamma": "--attention-gamma",
    "lam": "--attention-lambda",
    "p": "--attention-p",
    "alpha": "--attention-alpha",
}


def register_attention(name: str) -> Callable[[MappingFunction], MappingFunction]:
    """Make a mapping available as ``--attention name``.

    For a function ``mapping(scores, dim=-1, *, padding_mask=None, gamma=1.0, ...)`` that
    returns weights of the scores' shape, zero where `padding_mask` is True. Of gamma, lam,
    p and alpha it is given those its signature names, from the flags of that name::

        @register_attention("mine")
        def mine(scores, dim=-1, *, padding_mask=None, gamma=1.0):
            ...

    Raises:
        UsageError: the name is taken by another function.
    """

    def register(function: MappingFunction) -> MappingFunction:
        if name in CONTINUOUS:
            raise UsageError(f"attention {name!r} is continuous attention")
        known = ATTENTIONS.get(name, function)
        if _origin(known) != _origin(function):
            raise UsageError(f"attention {name!r} is registered already, by {_origin(known)[0]}")
        ATTENTIONS[name] = function
        return function

    return register


class BoundMapping:
    """A registered mapping with its parameters fixed.

    Args:
        name: as registered.
        function: the mapping.
        params: of gamma, lam, p and alpha those it takes, all of them.
    """

    def __init__(self, name: str, function: MappingFunction, params: Dict[str, Any]):
        self.name = name
        self.function = function
        self.params = params

    def __call__(self, scores: Tensor, padding_mask: Optional[Tensor]) -> Tensor:
        """Weights along the last dimension of `scores`."""
        return self.function(scores, -1, padding_mask=padding_mask, **self.params)

    def __str__(self) -> str:
        return f"{self.name}({', '.join(f'{k}={v}' for k, v in self.params.items())})"


def build_mapping(name: str, **given: Optional[float]) -> BoundMapping:
    """The mapping registered as `name`, with what was `given` of gamma, lam, p and alpha.

    None means the mapping's own default. A value the mapping has no use for is warned of.

    Raises:
        UsageError: an unknown name or a value out of range; names the flag and the value.
    """
    if name not in ATTENTIONS:
        raise UsageError(f"--attention {name!r} is not registered; choose from {_names()}")
    function = ATTENTIONS[name]
    taken = inspect.signature(function).parameters
    params = {}
    for key, flag in _FLAGS.items():
        value = given.get(key)
        if value is not None:
            try:
                check_parameter(key, value)
            except ArgumentError as error:
                allowed = error.allowed.partition(" (")[0]  # flags cannot be tensors
                raise UsageError(f"{flag} must be {allowed}, got {value!r}") from None
        if key in taken:
            params[key] = taken[key].default if value is None else value
            if params[key] is inspect.Parameter.empty:
                raise UsageError(f"{flag} must be given: {name} has no default for it")
        elif value is not None:
            logger.warning("%s %s has no effect: %s does not take it", flag, value, name)
    return BoundMapping(name, function, params)


def _origin(function: MappingFunction) -> Tuple[str, ...]:
    """What a function is, the same after its module is imported a second time."""
    inner = getattr(function, "func", function)  # of a functools.partial
    kind = type(inner)
    place = (getattr(inner, key, getattr(kind, key)) for key in ("__module__", "__qualname__"))
    return (*place, repr(getattr(function, "keywords", None)))


def _names() -> str:
    return ", ".join([*sorted(ATTENTIONS), *CONTINUOUS])
