"""Tensors put together and cut apart: `Concatenate`, stack, split, tile, repeat, flip, roll."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import ArgumentError, GraphTypeError, ShapeError, explain_error
from ..graph import Apply, Op, TensorType, Variable, apply_op
from ..graph.node import Array
from .axes import normalize_axes, normalize_axis
from .axis_moves import expand_dims
from .constants import as_variable, constant
from .indexing import getitem, take
from .promotion import common_dtype
from .shape import Size, broadcast_to, dimshuffle, flatten, reshape, shape_sizes, size_of
from .sizes import as_size, as_sizes


@dataclass(frozen=True, slots=True)
class Concatenate(Op):
    """n tensors of one dtype and rank, one after the other along `axis`; all other sizes are equal (a ShapeError if not)."""

    axis: int

    def infer(self, *types: TensorType) -> tuple[TensorType, ...]:
        first, text = types[0], ", ".join(map(str, types))
        if any(type.dtype != first.dtype or type.ndim != first.ndim for type in types) or not 0 <= self.axis < first.ndim:
            raise GraphTypeError(explain_error(f"what is joined along axis {self.axis} has one dtype and one rank", text))
        shape: list[int | None] = []
        for axis, sizes in enumerate(zip(*(type.shape for type in types), strict=True)):
            known = [size for size in sizes if size is not None]
            if axis == self.axis:
                shape.append(sum(known) if len(known) == len(sizes) else None)
                continue
            if len(set(known)) > 1:
                raise ShapeError(explain_error(f"joining along axis {self.axis}: the sizes of axis {axis} differ", text))
            shape.append(known[0] if known else None)
        return (first.with_shape(shape),)

    def grad(self, apply: Apply, cotangents: Sequence[Variable | None]) -> Sequence[Variable | None]:
        (gz,) = cotangents
        if gz is None:
            return (None,) * len(apply.inputs)
        return split(gz, [size_of(x, self.axis) for x in apply.inputs], self.axis)

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        self.infer(*(TensorType(array.dtype.name, array.shape) for array in arrays))
        return (np.concatenate(arrays, self.axis),)

    def __str__(self) -> str:
        return f"Concatenate{{axis={self.axis}}}"


def concatenate(tensors: Sequence[Any], axis: int = 0) -> Variable:
    """Tensors of one rank joined along an axis, in the dtype in which they meet.

    Raises ShapeError where other sizes differ, GraphTypeError where ranks do or nothing is given.

    >>> concatenate([np.zeros((2, 3)), np.zeros((4, 3))]).type.shape
    (6, 3)
    """
    parts = _brought_together(tensors, "concatenate")
    ranks = sorted({part.ndim for part in parts})
    if len(ranks) > 1 or ranks == [0]:
        raise GraphTypeError(explain_error("concatenate joins tensors of one rank from 1",
                                           ", ".join(str(part.type) for part in parts), "use stack for a new axis"))
    return apply_op(Concatenate(normalize_axis(axis, ranks[0])), *parts)


def join(axis: int, *tensors: Any) -> Variable:
    """Theano's order of `concatenate`: the axis, then the tensors."""
    return concatenate(tensors, axis)


def stack(tensors: Sequence[Any], axis: int = 0) -> Variable:
    """Tensors of one shape joined along a new axis, which is `axis` of the result.

    >>> stack([np.zeros((2, 3)), np.ones((2, 3))], axis=-1).type.shape
    (2, 3, 2)
    """
    parts = _brought_together(tensors, "stack")
    if len({part.ndim for part in parts}) > 1:
        raise GraphTypeError(explain_error("stack joins tensors of one shape", ", ".join(str(part.type) for part in parts)))
    place = normalize_axis(axis, parts[0].ndim + 1)
    return apply_op(Concatenate(place), *(expand_dims(part, place) for part in parts))


def _brought_together(tensors: Sequence[Any], what: str) -> list[Variable]:
    listed = list(tensors)
    if not listed:
        raise GraphTypeError(explain_error(f"{what} needs at least one tensor"))
    dtype = common_dtype(listed)
    return [as_variable(tensor, dtype) for tensor in listed]


def split(x: Any, sizes: Any, axis: int = 0, n_splits: int | None = None) -> list[Variable]:
    """x cut along an axis into parts: `sizes` is how many equal ones, or the list of their sizes (ints or symbolic scalars).

    `n_splits`, for programs written for Theano, is how many parts there are (an ArgumentError if not).

    Raises ShapeError where the sizes do not add up to that of the axis, when the function is called if not before.

    >>> [part.type.shape for part in split(np.zeros((6, 2)), [1, 5])], len(split(np.zeros((6, 2)), 3))
    ([(1, 2), (5, 2)], 3)
    """
    x = as_variable(x)
    place = normalize_axis(axis, x.ndim)
    if isinstance(sizes, (list, tuple, Variable, np.ndarray)):
        parts = as_sizes(sizes, "split")
        if n_splits not in (None, len(parts)):
            raise ArgumentError(explain_error(f"split was told to make {n_splits} parts", f"{len(parts)} sizes"))
        return _parts(x, parts, place)
    return _equal_parts(x, as_size(sizes, "split"), place)


def _equal_parts(x: Variable, count: Size, axis: int) -> list[Variable]:
    size = size_of(x, axis)
    if not isinstance(count, int) or count < 1:
        raise ArgumentError(explain_error("split takes a number of parts from 1", repr(count)))
    if isinstance(size, int):
        if size % count:
            raise ShapeError(explain_error(f"axis {axis} can not be split into {count} equal parts", f"{x.type}"))
        return _parts(x, (size // count,) * count, axis)
    sizes = shape_sizes(x)
    rows = reshape(x, (*sizes[:axis], count, size // count, *sizes[axis + 1:]))  # refuses a size that count does not divide
    return [getitem(rows, (*[slice(None)] * axis, number)) for number in range(count)]


def _parts(x: Variable, sizes: Sequence[Size], axis: int) -> list[Variable]:
    total, parts = x.type.shape[axis], [size for size in sizes if isinstance(size, int)]
    if any(size < 0 for size in parts) or (total is not None and len(parts) == len(sizes) and sum(parts) != total):
        raise ShapeError(explain_error(f"the parts do not add up to axis {axis}", f"sizes {list(sizes)} of {x.type}"))
    exact = total is not None and len(parts) == len(sizes)
    result: list[Variable] = []
    start: Size = 0
    for number, size in enumerate(sizes):
        stop = start + size
        last = number == len(sizes) - 1
        part = getitem(x, (*[slice(None)] * axis, slice(start, None if last and not exact else stop)))
        result.append(part if exact else _with_size(part, axis, size))
        start = stop
    return result


def _with_size(part: Variable, axis: int, size: Size) -> Variable:
    """The part with its size as it was asked for; a ShapeError when shapes are bound where a slice was clipped."""
    sizes = shape_sizes(part)
    return reshape(part, (*sizes[:axis], size, *sizes[axis + 1:]))


def tile(x: Any, repetitions: Any) -> Variable:
    """x laid side by side `repetitions` times along each axis (ints or symbolic scalars), as NumPy's tile.

    >>> tile(np.zeros((2, 3)), (2, 1, 2)).type.shape
    (2, 2, 6)
    """
    x = as_variable(x)
    counts = as_sizes(repetitions, "tile")
    rank = max(x.ndim, len(counts))
    counts = (1,) * (rank - len(counts)) + counts
    sizes = (1,) * (rank - x.ndim) + shape_sizes(x)
    spread: list[int | None] = []
    for axis in range(-rank, 0):
        spread += [None, None if axis < -x.ndim else axis + x.ndim]
    pairs = [each for pair in zip(counts, sizes, strict=True) for each in pair]
    tiled = broadcast_to(dimshuffle(x, spread), pairs)
    return reshape(tiled, [_times(count, size) for count, size in zip(counts, sizes, strict=True)])


def _times(a: Size, b: Size) -> Size:
    if isinstance(a, int) and isinstance(b, int):
        return a * b
    return b if isinstance(a, int) and a == 1 else a if isinstance(b, int) and b == 1 else a * b


def repeat(x: Any, repeats: Any, axis: int | None = None) -> Variable:
    """Every element repeated along an axis (of the flattened tensor by default).

    `repeats` is an int, a symbolic scalar, or a list with one int for each element of the axis.

    >>> repeat(np.zeros((2, 3)), 2, axis=1).type.shape
    (2, 6)
    """
    x = as_variable(x)
    if axis is None:
        return repeat(flatten(x), repeats, 0)
    place = normalize_axis(axis, x.ndim)
    if isinstance(repeats, (list, tuple, np.ndarray)) and np.ndim(repeats):
        return _repeated_each(x, np.asarray(repeats), place)
    count = as_size(repeats, "repeat")
    sizes = list(shape_sizes(x))
    copies = broadcast_to(expand_dims(x, place + 1), [*sizes[:place + 1], count, *sizes[place + 1:]])
    return reshape(copies, [*sizes[:place], _times(sizes[place], count), *sizes[place + 1:]])


def _repeated_each(x: Variable, counts: np.ndarray[Any, Any], axis: int) -> Variable:
    size = x.type.shape[axis]
    if counts.ndim != 1 or counts.dtype.kind not in "iu" or size != len(counts) or (counts < 0).any():
        raise ShapeError(explain_error(f"repeat takes one count from 0 for each element of axis {axis}",
                                       f"{len(counts)} counts for {x.type}"))
    return take(x, constant(np.repeat(np.arange(len(counts)), counts), "int64"), axis)


def flip(x: Any, axis: Any = None) -> Variable:
    """Elements in reverse order along an axis, several or (by default) all."""
    x = as_variable(x)
    flipped = normalize_axes(axis, x.ndim)
    return getitem(x, tuple(slice(None, None, -1) if place in flipped else slice(None) for place in range(x.ndim)))


def roll(x: Any, shift: Any, axis: Any = None) -> Variable:
    """Elements moved by `shift` places along an axis; those that leave it come in at the other end, as NumPy's roll.

    `shift` may be a symbolic integer scalar; shift and axis may be lists of equal length.  By default the flattened
    tensor is rolled.
    """
    x = as_variable(x)
    if axis is None:
        return reshape(roll(flatten(x), shift, 0), shape_sizes(x))
    if not isinstance(axis, (list, tuple)):
        return _rolled(x, shift, normalize_axis(axis, x.ndim))
    shifts = shift if isinstance(shift, (list, tuple)) else [shift] * len(axis)
    if len(shifts) != len(axis):
        raise ArgumentError(explain_error("roll takes one shift for each axis", f"{shift} and {axis}"))
    for one_shift, one_axis in zip(shifts, axis, strict=True):
        x = _rolled(x, one_shift, normalize_axis(one_axis, x.ndim))
    return x


def _rolled(x: Variable, shift: Any, axis: int) -> Variable:
    size, by = size_of(x, axis), as_size(shift, "roll")
    if isinstance(size, int) and isinstance(by, int):
        start: Size = -by % size if size else 0
    else:
        start = -as_variable(by, "int64") % size
    before = [slice(None)] * axis
    return concatenate([getitem(x, (*before, slice(start, None))), getitem(x, (*before, slice(None, start)))], axis)

