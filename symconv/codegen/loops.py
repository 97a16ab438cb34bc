"""From shapes and strides to the fewest loops that visit every element."""
from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ..errors import InternalError
from .kernel import Operand

Strides = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class LoopNest:
    """Nested loops, outermost first: the size of each, and for every operand its stride in each."""

    sizes: tuple[int, ...]
    strides: tuple[Strides, ...]

    @property
    def rank(self) -> int:
        """Number of loops."""
        return len(self.sizes)

    @property
    def total(self) -> int:
        """Number of elements visited."""
        return math.prod(self.sizes)

    def reordered(self, order: Sequence[int]) -> LoopNest:
        """The same loops in another order."""
        return LoopNest(tuple(self.sizes[axis] for axis in order),
                        tuple(tuple(each[axis] for axis in order) for each in self.strides))


def broadcast_strides(operand: Operand, shape: tuple[int, ...]) -> Strides:
    """Strides with which an operand is read as if it had `shape`: 0 where it is repeated.

    >>> broadcast_strides(Operand.contiguous("float32", (3, 1)), (5, 3, 4))
    (0, 1, 0)
    """
    missing = len(shape) - len(operand.shape)
    strides = [0] * missing
    for size, stride, wanted in zip(operand.shape, operand.strides, shape[missing:], strict=True):
        if size != wanted and size != 1:
            raise InternalError(f"an operand of shape {operand.shape} is not broadcast to {shape}")
        strides.append(0 if size == 1 else stride)
    return tuple(strides)


def collapse(sizes: Sequence[int], strides: Sequence[Sequence[int]], fixed: Sequence[int] = ()) -> LoopNest:
    """Leave out loops of one turn, and join neighbours that every operand passes through as one.

    A loop in `fixed` is never joined with the one before it.  At least one loop is left.

    >>> collapse((2, 1, 3, 4), [(12, 12, 4, 1), (0, 0, 1, 0)])
    LoopNest(sizes=(2, 3, 4), strides=((12, 4, 1), (0, 1, 0)))
    """
    kept: list[tuple[int, list[int]]] = []
    barrier = False
    for axis, size in enumerate(sizes):
        steps = [each[axis] for each in strides]
        barrier = barrier or axis in fixed
        if size == 1:
            continue
        if kept and not barrier and all(before == step * size for before, step in zip(kept[-1][1], steps, strict=True)):
            kept[-1] = (kept[-1][0] * size, steps)
        else:
            kept.append((size, steps))
        barrier = False
    if not kept:
        kept = [(1, [1] * len(strides))]  # as a loop over contiguous operands, with which it so shares its kernel
    return LoopNest(tuple(size for size, _ in kept), tuple(zip(*(steps for _, steps in kept), strict=True)))
