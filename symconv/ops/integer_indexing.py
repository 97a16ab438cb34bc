"""Indexing by integer arrays: `Gather` reads elements, `ScatterAdd` and `ScatterSet` write them.

All three index the first n axes of x by n int64 arrays.  The arrays have one rank and broadcast together to the shape I;
element i of I names the position (index_0[i], …, index_{n-1}[i]) of x, a block of the shape R = x.shape[n:].  Negative
indices count from the end.  An index outside its axis is an IndexRangeError at run time, never a wild read.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..errors import GraphTypeError, explain_error
from ..graph import Apply, Op, TensorType, Variable, apply_op
from ..graph.node import Array
from .array_module import add_at, array_module
from .basic_indexing import check_fits_region, checked_index, nothing
from .broadcasting import broadcast_types
from .elementwise import eq, where


def _indexed_shape(n: int, x: TensorType, indices: Sequence[TensorType]) -> tuple[int | None, ...]:
    """I + R; errors where the indices do not fit x."""
    if not 1 <= n <= x.ndim or len(indices) != n:
        raise GraphTypeError(explain_error(f"{n} axes are indexed by {n} arrays", f"{len(indices)} arrays for {x}"))
    if any(index.dtype != "int64" or index.ndim != indices[0].ndim for index in indices):
        raise GraphTypeError(explain_error("index arrays are int64 and of one rank", ", ".join(map(str, indices))))
    return broadcast_types("the index arrays", indices) + x.shape[n:]


def _positions(x: Array, indices: Sequence[Array]) -> tuple[Array, ...]:
    """The indices counted from 0, checked against their axes in row-major order."""
    for axis, index in enumerate(indices):
        size = x.shape[axis]
        wrong = index[(index < -size) | (index >= size)]
        if wrong.size:
            checked_index(int(wrong.ravel()[0]), axis, size)
    return tuple(np.broadcast_arrays(*(np.where(index < 0, index + x.shape[axis], index)
                                       for axis, index in enumerate(indices))))


def _type(array: Array) -> TensorType:
    return TensorType(array.dtype.name, array.shape)


@dataclass(frozen=True, slots=True)
class Gather(Op):
    """z[i, r] = x[index_0[i], …, index_{n-1}[i], r], of shape I + R.  Inputs: x, then the n index arrays."""

    n_index_axes: int

    def infer(self, x: TensorType, *indices: TensorType) -> tuple[TensorType, ...]:
        return (x.with_shape(_indexed_shape(self.n_index_axes, x, indices)),)

    def grad(self, apply: Apply, cotangents: Sequence[Variable | None]) -> Sequence[Variable | None]:
        from .creation import zeros_like

        (gz,) = cotangents
        x, *indices = apply.inputs
        gx = None if gz is None else apply_op(ScatterAdd(self.n_index_axes), zeros_like(x, gz.dtype), gz, *indices)
        return (gx, *(None for _ in indices))

    def reference(self, x: Array, *indices: Array) -> tuple[Array, ...]:
        _indexed_shape(self.n_index_axes, _type(x), [_type(index) for index in indices])
        return (array_module(x).array(x[_positions(x, indices)]),)

    def __str__(self) -> str:
        return f"Gather{{{self.n_index_axes}}}"


class _Scatter(Op):
    """What both ways of writing share. Inputs: x, y, then the n index arrays; y has the rank of I + R, sizes equal or 1."""

    __slots__ = ()
    n_index_axes: ClassVar[int]

    def infer(self, x: TensorType, y: TensorType, *indices: TensorType) -> tuple[TensorType, ...]:
        check_fits_region("the index", x, _indexed_shape(self.n_index_axes, x, indices), y)
        return (x,)

    def _start(self, x: Array, y: Array, indices: Sequence[Array]) -> tuple[Array, tuple[Array, ...], Array]:
        """A copy of x, the positions, and y broadcast to I + R."""
        region = _indexed_shape(self.n_index_axes, _type(x), [_type(index) for index in indices])
        check_fits_region("the index", _type(x), region, _type(y))
        copy = array_module(x).array(x, order="C")
        return copy, _positions(x, indices), np.broadcast_to(y, _type(x).with_shape(region).static_shape)

    def __str__(self) -> str:
        return f"{self.name}{{{self.n_index_axes}}}"


@dataclass(frozen=True, slots=True)
class ScatterAdd(_Scatter):
    """A copy of x with y[i, r] added at x[index_0[i], …, index_{n-1}[i], r] for every i, r; repeated positions add up.

    Inputs: x, y, then the n index arrays.  y has x's dtype and the rank of I + R, each size equal to that of I + R or 1.
    The sums are made in row-major order of I in the dtype of x.
    """

    n_index_axes: int  # type: ignore[misc]

    def grad(self, apply: Apply, cotangents: Sequence[Variable | None]) -> Sequence[Variable | None]:
        from .unbroadcast import unbroadcast

        (gz,) = cotangents
        _, y, *indices = apply.inputs
        if gz is None:
            return (None,) * len(apply.inputs)
        gathered = apply_op(Gather(self.n_index_axes), gz, *indices)
        return (gz, unbroadcast(gathered, y), *(None for _ in indices))

    def reference(self, x: Array, y: Array, *indices: Array) -> tuple[Array, ...]:
        result, positions, values = self._start(x, y, indices)
        add_at(result, positions, values)
        return (result,)


@dataclass(frozen=True, slots=True)
class ScatterSet(_Scatter):
    """A copy of x with x[index_0[i], …, index_{n-1}[i], r] = y[i, r]; of repeated positions the last i (row-major) wins.

    Inputs: x, y, then the n index arrays.  y has x's dtype and the rank of I + R, each size equal to that of I + R or 1.
    """

    n_index_axes: int  # type: ignore[misc]

    def grad(self, apply: Apply, cotangents: Sequence[Variable | None]) -> Sequence[Variable | None]:
        from .unbroadcast import unbroadcast

        (gz,) = cotangents
        x, y, *indices = apply.inputs
        if gz is None:
            return (None,) * len(apply.inputs)
        gx = apply_op(self, gz, nothing(gz.dtype, y.ndim), *indices)
        gathered = apply_op(Gather(self.n_index_axes), gz, *indices)
        gy = unbroadcast(where(self._written_last(x, y.ndim, indices), gathered, nothing(gz.dtype, y.ndim)), y)
        return (gx, gy, *(None for _ in indices))

    def _written_last(self, x: Variable, ndim: int, indices: Sequence[Variable]) -> Variable:
        """For each element of I (axes of size 1 for R) whether no later one names the same position."""
        from .creation import arange, zeros
        from .shape import dimshuffle, reshape, shape_sizes
        from .sizes import joined_size

        n = self.n_index_axes
        places = zeros(shape_sizes(x)[:n], "int64")
        region = shape_sizes(apply_op(Gather(n), places, *indices))
        order = reshape(arange(joined_size(region)), region)
        last = apply_op(Gather(n), apply_op(ScatterSet(n), places, order, *indices), *indices)
        return dimshuffle(eq(last, order), [*range(order.ndim), *["x"] * (ndim - order.ndim)])

    def reference(self, x: Array, y: Array, *indices: Array) -> tuple[Array, ...]:
        result, positions, values = self._start(x, y, indices)
        flat = np.ravel_multi_index(tuple(np.ravel(each) for each in positions), x.shape[:self.n_index_axes])
        blocks = result.reshape(int(np.prod(x.shape[:self.n_index_axes])), -1) if result.size else result
        if result.size and flat.size:
            places, from_end = np.unique(flat[::-1], return_index=True)
            blocks[places] = values.reshape(len(flat), -1)[len(flat) - 1 - from_end]
        return (result,)
