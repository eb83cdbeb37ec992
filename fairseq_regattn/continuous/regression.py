"""Values as a function of position: ridge regression on basis functions (paper B, section 4)."""

import math
from typing import Any, Dict, Tuple, Union

import torch
from torch import Tensor, nn

from fairseq_regattn.continuous.basis import LineBasis, PlaneBasis
from fairseq_regattn.errors import ArgumentError

MARGIN = 0.5
"""How far a regression with margins reaches beyond each end, in lengths of the sequence."""

KEPT = 1 << 24
"""How many numbers a regression keeps, in matrices of the sizes it met last."""


def positions(length: int, margin: bool = False) -> Tensor:
    """The middles of `length` equal bins of ``[0, 1]``, in float64.

    Args:
        length: at least 0.
        margin: go on, in the same steps, over all that lie inside ``(-1/2, 3/2)``: ``2 length``
            of them, or ``2 length - 1`` if `length` is odd.
    """
    beyond = length // 2 if margin else 0
    return (torch.arange(-beyond, length + beyond, dtype=torch.float64) + 0.5) / max(1, length)


class RidgeRegression(nn.Module):
    """The matrix ``G`` for which ``V(t) = values' G psi(t)`` fits values at equal distances.

    ``values' G`` minimises ``sum_l |values_l - B psi(t_l)|^2 + penalty |B|^2`` over B. G depends
    on the length only, and is computed in float64, once a length (within `KEPT`).

    Args:
        basis: a :class:`LineBasis` for sequences, a :class:`PlaneBasis` for grids.
        penalty: > 0.
        margin: also fit 0 beyond both ends (:func:`positions`), so that V falls to 0 there.

    Raises:
        ArgumentError: `penalty` not finite and > 0.
    """

    def __init__(
        self, basis: Union[LineBasis, PlaneBasis], penalty: float = 0.01, margin: bool = False
    ):
        super().__init__()
        if not 0 < penalty < math.inf:
            raise ArgumentError("penalty", penalty, "a finite number > 0")
        self.basis = basis
        self.penalty = penalty
        self.margin = margin
        self._matrices: Dict[Tuple[int, ...], Tensor] = {}

    def matrix(self, *size: int) -> Tensor:
        """``G``, ``length x N``; for a grid of `height` and `width` ``height width x N``.

        In the basis' precision and on its device. Rows of a grid are its cells, row by row; the
        plane's first axis goes down, its second to the right.
        """
        matrix = self._matrices.pop(size, None)
        if matrix is None:
            with torch.inference_mode(False), torch.no_grad():  # training may use it later
                matrix = self._solve(size).to(self.basis.centres)
            total = matrix.numel() + sum(kept.numel() for kept in list(self._matrices.values()))
            for oldest in list(self._matrices):
                if total <= KEPT:
                    break
                gone = self._matrices.pop(oldest, matrix[:0])  # unless another thread was faster
                total -= gone.numel()
        self._matrices[size] = matrix  # the newest are last
        return matrix

    def _apply(self, *args: Any, **kwargs: Any) -> "RidgeRegression":
        self._matrices = {}  # of a basis elsewhere, or of another precision
        return super()._apply(*args, **kwargs)

    def __getstate__(self) -> Dict[str, Any]:
        return {**self.__dict__, "_matrices": {}}  # copies and files of a model do without

    def _solve(self, size: Tuple[int, ...]) -> Tensor:
        axes = [positions(length, self.margin) for length in size]
        points = axes[0] if len(axes) == 1 else torch.cartesian_prod(*axes)
        design = self.basis.double_precision()(points)  # points x N
        gram = design.T @ design + self.penalty * torch.eye(len(self.basis), dtype=torch.float64)
        solved = torch.linalg.solve(gram, design.T).T  # F' (F F' + penalty I)^-1
        solved = solved.unflatten(0, [len(axis) for axis in axes])
        for dim, length in enumerate(size):
            solved = solved.narrow(dim, length // 2 if self.margin else 0, length)
        return solved.flatten(0, -2)

    def coefficients(self, values: Tensor, padding_mask: Tensor) -> Tensor:
        """``B'``, ``bsz x N x dim``, of sequences ``bsz x length x dim``.

        Each over its true length, in the order of its positions, wherever its padding is
        (True = ignore). Without any position, B is 0. Reads the lengths: this waits for a GPU.
        """
        present = ~padding_mask
        lengths = present.sum(1).tolist()
        matrices = values.new_zeros(*values.shape[:2], len(self.basis))
        if sum(lengths):
            rows = [self.matrix(length) for length in lengths]
            matrices[present] = torch.cat(rows).to(values)
        return matrices.transpose(1, 2) @ values
