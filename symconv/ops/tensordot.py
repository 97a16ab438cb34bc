"""Sums of products over several axes: `tensordot`, as one matrix product."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import ArgumentError, ShapeError, explain_error
from ..graph import Apply, Op, TensorType, Variable, apply_op
from ..graph.node import Array
from .axes import normalize_axes
from .linalg import MatMul, shuffled, together


@dataclass(frozen=True, slots=True)
class MatchSizes(Op):
    """x itself, whose axis `own` must have the size of axis `axis` of `other`, for every pair (own, axis). A view.

    Inputs: x, other.
    """

    pairs: tuple[tuple[int, int], ...]

    def infer(self, x: TensorType, other: TensorType) -> tuple[TensorType, ...]:
        """The type of x with what `other` tells of its sizes; ShapeError where they differ."""
        check_sizes(self.pairs, x, other)
        known = dict(self.pairs)
        return (x.with_shape([other.shape[known[axis]] if size is None and axis in known else size
                              for axis, size in enumerate(x.shape)]),)

    def grad(self, apply: Apply, cotangents: Sequence[Variable | None]) -> Sequence[Variable | None]:
        """The cotangent itself; nothing for `other`."""
        return (cotangents[0], None)

    def reference(self, x: Array, other: Array) -> tuple[Array, ...]:
        """x."""
        self.infer(*(TensorType(array.dtype.name, array.shape) for array in (x, other)))
        return (x,)

    def view(self, shape: tuple[int, ...], strides: tuple[int, ...], result_shape: tuple[int, ...],
             constants: Mapping[int, Array]) -> tuple[int, tuple[int, ...]] | None:
        """The memory of x as it lies."""
        return 0, strides


def check_sizes(pairs: Sequence[tuple[int, int]], b: TensorType, a: TensorType) -> None:
    """A ShapeError where axis `own` of b and axis `other` of a are known to have different sizes."""
    for own, other in pairs:
        sizes = a.shape[other], b.shape[own]
        if None not in sizes and sizes[0] != sizes[1]:
            raise ShapeError(explain_error(f"tensordot sums over axis {other} of the first and axis {own} of the second, "
                                           "whose sizes differ", f"{sizes[0]} and {sizes[1]} in {a} and {b}"))


def tensordot(a: Any, b: Any, axes: Any = 2) -> Variable:
    """The sum of products over several axes, as `numpy.tensordot`.

    `axes` is an int n (the last n axes of `a` with the first n of `b`), or a pair: the axes of `a` and those of `b`, each an
    int or a sequence.  The result has the other axes of `a`, then those of `b`.

    >>> tensordot(np.zeros((2, 3, 4)), np.zeros((4, 3, 5)), axes=([1, 2], [1, 0])).type.shape
    (2, 5)
    """
    from .shape import reshape, shape_sizes
    from .sizes import joined_size

    a, b = together(a, b)
    of_a, of_b = _axis_pairs(axes, a, b)
    b = _same_sizes(a, of_a, b, of_b)
    free_a, free_b = ([axis for axis in range(x.ndim) if axis not in summed] for x, summed in ((a, of_a), (b, of_b)))
    sizes_a, sizes_b = shape_sizes(a), shape_sizes(b)
    rows, columns = ([sizes[axis] for axis in free] for sizes, free in ((sizes_a, free_a), (sizes_b, free_b)))
    inner_a, inner_b = ([sizes[axis] for axis in summed] for sizes, summed in ((sizes_a, of_a), (sizes_b, of_b)))
    left, right = shuffled(a, [*free_a, *of_a]), shuffled(b, [*of_b, *free_b])
    if (len(free_a), len(of_a), len(free_b)) == (1, 1, 1):
        return apply_op(MatMul(), left, right)
    product = apply_op(MatMul(), reshape(left, (joined_size(rows), joined_size(inner_a))),
                       reshape(right, (joined_size(inner_b), joined_size(columns))))
    return reshape(product, (*rows, *columns))


def _axis_pairs(axes: Any, a: Variable, b: Variable) -> tuple[tuple[int, ...], tuple[int, ...]]:
    if isinstance(axes, (int, np.integer)) and not isinstance(axes, bool):
        if not 0 <= axes <= min(a.ndim, b.ndim):
            raise ArgumentError(explain_error("tensordot sums over at most as many axes as both tensors have",
                                              f"axes={axes} with ranks {a.ndim} and {b.ndim}"))
        return tuple(range(a.ndim - int(axes), a.ndim)), tuple(range(int(axes)))
    if not isinstance(axes, (tuple, list)) or len(axes) != 2:
        raise ArgumentError(explain_error("axes of tensordot is an int or a pair: the axes of a, the axes of b", repr(axes)))
    of_a, of_b = normalize_axes(axes[0], a.ndim), normalize_axes(axes[1], b.ndim)
    if len(of_a) != len(of_b):
        raise ArgumentError(explain_error("tensordot needs as many axes of a as of b", f"{axes[0]!r} and {axes[1]!r}"))
    return of_a, of_b


def _same_sizes(a: Variable, of_a: Sequence[int], b: Variable, of_b: Sequence[int]) -> Variable:
    """b, with the sizes of its summed axes compared with those of a: now where they are known, else when it is run.

    With one axis the matrix product compares them; several are joined first, and 2 × 6 would pass for 3 × 4.
    """
    pairs = tuple(zip(of_b, of_a, strict=True))
    check_sizes(pairs, b.type, a.type)
    if len(pairs) < 2 or all(b.type.shape[own] == a.type.shape[other] is not None for own, other in pairs):
        return b
    return apply_op(MatchSizes(pairs), b, a)
