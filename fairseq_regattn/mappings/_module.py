"""The shared half of the module twins."""

from typing import Callable, Optional

from torch import Tensor, nn

from fairseq_regattn.mappings._rows import Parameter, check_parameter


class MappingModule(nn.Module):
    """A mapping with its parameters kept; subclasses name the function.

    A parameter given as ``nn.Parameter`` is learned, a tensor becomes a buffer.
    """

    def __init__(self, function: Callable[..., Tensor], dim: int, **params: Parameter):
        super().__init__()
        self.function = function
        self.dim = dim
        self.names = tuple(params)
        for name, value in params.items():
            check_parameter(name, value)
            if isinstance(value, Tensor) and not isinstance(value, nn.Parameter):
                self.register_buffer(name, value)
            else:
                setattr(self, name, value)

    def forward(self, scores: Tensor, padding_mask: Optional[Tensor] = None) -> Tensor:
        params = {name: getattr(self, name) for name in self.names}
        return self.function(scores, self.dim, padding_mask=padding_mask, **params)

    def extra_repr(self) -> str:
        shown = []
        for name in ("dim", *self.names):
            value = getattr(self, name)
            if isinstance(value, Tensor):
                value = f"{value.item():g}" if value.dim() == 0 else tuple(value.shape)
            shown.append(f"{name}={value}")
        return ", ".join(shown)
