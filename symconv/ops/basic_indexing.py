"""Indexing by integers and slices: the pattern of an index, `Subtensor` that reads it and `IncSubtensor` that writes it.

A pattern has one entry for each axis of x: an int, `INPUT` for an integer that is an input, or a `Slice` whose bounds are
ints, None or `INPUT`.  The int64 scalars that stand for `INPUT` follow the other inputs in the order of their appearance
(axis by axis; start, stop, step inside a slice).  Everything means what it means in NumPy.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from ..errors import ArgumentError, GraphTypeError, IndexRangeError, ShapeError, explain_error
from ..graph import Apply, Op, TensorType, Variable, apply_op
from ..graph.node import Array
from .array_module import array_module

INPUT: Literal["?"] = "?"
Bound = int | None | Literal["?"]


@dataclass(frozen=True, slots=True)
class Slice:
    """One slice of a pattern; prints as Python writes it, `?` for a bound that is an input."""

    start: Bound = None
    stop: Bound = None
    step: Bound = None

    @property
    def bounds(self) -> tuple[Bound, Bound, Bound]:
        """start, stop, step."""
        return self.start, self.stop, self.step

    @property
    def fixed(self) -> slice:
        """Python's slice, where no bound is an input."""
        return slice(*self.bounds)

    @property
    def is_full(self) -> bool:
        """Whether it is `:`."""
        return self.bounds in ((None, None, None), (0, None, None), (None, None, 1), (0, None, 1))

    def __str__(self) -> str:
        texts = ["" if bound is None else str(bound) for bound in self.bounds]
        return ":".join(texts if texts[2] else texts[:2])


Entry = int | Literal["?"] | Slice
Pattern = tuple[Entry, ...]


def pattern_text(pattern: Sequence[Entry]) -> str:
    """A pattern as it is written between the brackets.

    >>> pattern_text((Slice(1), INPUT, Slice(None, None, -1)))
    '1:, ?, ::-1'
    """
    return ", ".join(str(entry) for entry in pattern)


def slice_bounds(entry: Slice, size: int) -> tuple[int, int, int]:
    """(start, step, length) of a slice without inputs on an axis of this size, as NumPy clips it.

    >>> slice_bounds(Slice(-3), 10), slice_bounds(Slice(None, None, -4), 10), slice_bounds(Slice(8, 2), 10)
    ((7, 1, 3), (9, -4, 3), (8, 1, 0))
    """
    if entry.step == 0:
        raise ArgumentError(explain_error("the step of a slice can not be 0", str(entry)))
    start, stop, step = entry.fixed.indices(size)
    return start, step, len(range(start, stop, step))


def checked_index(index: int, axis: int, size: int) -> int:
    """A possibly negative index as a position from 0; an IndexRangeError where the axis has no such element."""
    if not -size <= index < size:
        raise IndexRangeError(explain_error(f"index {index} is outside axis {axis}", f"size {size}",
                                            f"indices go from {-size} to {size - 1}" if size else "the axis is empty"))
    return index + size if index < 0 else index


def sliced_size(entry: Slice, size: int | None) -> int | None:
    """The size that a slice leaves of an axis, None where inputs or the unknown size decide it."""
    if entry.step == 0:
        raise ArgumentError(explain_error("the step of a slice can not be 0", str(entry)))
    if entry.is_full:
        return size
    if INPUT in entry.bounds:
        return 0 if size == 0 else None
    if size is None:
        return 0 if _is_always_empty(entry) else None
    return slice_bounds(entry, size)[2]


def _is_always_empty(entry: Slice) -> bool:
    """Whether bounds counted from the same end leave nothing, however long the axis is."""
    start, stop, step = entry.bounds
    if not isinstance(start, int) or not isinstance(stop, int) or (start < 0) != (stop < 0):
        return False
    return start <= stop if isinstance(step, int) and step < 0 else start >= stop


def region_shape(pattern: Pattern, x: TensorType) -> tuple[int | None, ...]:
    """The shape of x[pattern]; errors where the pattern does not fit x."""
    if len(pattern) != x.ndim:
        raise GraphTypeError(explain_error(f"the index [{pattern_text(pattern)}] is for rank {len(pattern)}", str(x)))
    shape: list[int | None] = []
    for axis, (entry, size) in enumerate(zip(pattern, x.shape, strict=True)):
        if isinstance(entry, Slice):
            shape.append(sliced_size(entry, size))
        elif entry != INPUT and size is not None:
            checked_index(entry, axis, size)
    return tuple(shape)


def count_inputs(pattern: Pattern) -> int:
    """How many integers of a pattern are inputs."""
    return sum(bound == INPUT for entry in pattern for bound in (entry.bounds if isinstance(entry, Slice) else (entry,)))


def filled(pattern: Pattern, scalars: Sequence[Any]) -> Pattern:
    """The pattern with numbers in place of its inputs (None leaves an input open)."""
    rest = iter(scalars)

    def number(bound: Bound) -> Any:
        if bound != INPUT:
            return bound
        value = next(rest)
        return INPUT if value is None else int(value)

    return tuple(Slice(*(number(bound) for bound in entry.bounds)) if isinstance(entry, Slice) else number(entry)
                 for entry in pattern)


def check_scalars(pattern: Pattern, scalars: Sequence[TensorType]) -> None:
    """That there is an int64 scalar for each input of a pattern."""
    if len(scalars) != count_inputs(pattern) or any(scalar != TensorType("int64", ()) for scalar in scalars):
        wanted = f"the index [{pattern_text(pattern)}] takes {count_inputs(pattern)} int64 scalars"
        raise GraphTypeError(explain_error(wanted, ", ".join(map(str, scalars))))


def numpy_index(pattern: Pattern, scalars: Sequence[Any], shape: tuple[int, ...]) -> tuple[Any, ...]:
    """The index for a NumPy array of this shape; an IndexRangeError with our words where it is out of range."""
    numbers = filled(pattern, scalars)
    region_shape(numbers, TensorType("int64", shape))
    return tuple(entry.fixed if isinstance(entry, Slice) else entry for entry in numbers)


@dataclass(frozen=True, slots=True)
class Subtensor(Op):
    """x[pattern]: an axis for every slice, none for an integer.  Inputs: x, then the scalars of the pattern.

    A slice clips its bounds as NumPy does.  An integer outside its axis is an IndexRangeError: at once or when shapes are
    bound where that is enough to know it, else at run time; of several the first axis is reported.
    """

    pattern: Pattern

    @property
    def value_inputs(self) -> tuple[int, ...]:
        """The bounds of slices; plain indices decide no shape."""
        positions: list[int] = []
        number = 1
        for entry in self.pattern:
            for bound in entry.bounds if isinstance(entry, Slice) else (entry,):
                if bound == INPUT:
                    if isinstance(entry, Slice):
                        positions.append(number)
                    number += 1
        return tuple(positions)

    def infer(self, x: TensorType, *scalars: TensorType) -> tuple[TensorType, ...]:
        check_scalars(self.pattern, scalars)
        return (x.with_shape(region_shape(self.pattern, x)),)

    def infer_bound(self, types: Sequence[TensorType], values: Mapping[int, Array]) -> tuple[TensorType, ...]:
        numbers = filled(self.pattern, [values.get(position) for position in range(1, len(types))])
        return (types[0].with_shape(region_shape(numbers, types[0])),)

    def grad(self, apply: Apply, cotangents: Sequence[Variable | None]) -> Sequence[Variable | None]:
        from .creation import zeros_like

        (gz,) = cotangents
        x, *scalars = apply.inputs
        gx = None if gz is None else apply_op(IncSubtensor(self.pattern, "add"), zeros_like(x, gz.dtype), gz, *scalars)
        return (gx, *(None for _ in scalars))

    def reference(self, x: Array, *scalars: Array) -> tuple[Array, ...]:
        return (array_module(x).array(x[numpy_index(self.pattern, scalars, x.shape)]),)

    def view(self, shape: tuple[int, ...], strides: tuple[int, ...], result_shape: tuple[int, ...],
             constants: Mapping[int, Array]) -> tuple[int, tuple[int, ...]] | None:
        count = count_inputs(self.pattern)
        if any(position not in constants for position in range(1, 1 + count)):
            return None
        return region_view(filled(self.pattern, [constants[position] for position in range(1, 1 + count)]), shape, strides)

    def __str__(self) -> str:
        return f"Subtensor{{{pattern_text(self.pattern)}}}"


def region_view(pattern: Pattern, shape: tuple[int, ...], strides: tuple[int, ...]) -> tuple[int, tuple[int, ...]]:
    """Offset of the first element and strides of x[pattern], for a pattern without inputs."""
    offset, result = 0, []
    for axis, (entry, size, stride) in enumerate(zip(pattern, shape, strides, strict=True)):
        if isinstance(entry, Slice):
            start, step, length = slice_bounds(entry, size)
            offset += start * stride if length else 0
            result.append(step * stride)
        elif isinstance(entry, int):
            offset += checked_index(entry, axis, size) * stride
    return offset, tuple(result)


@dataclass(frozen=True, slots=True)
class IncSubtensor(Op):
    """A copy of x in which x[pattern] is set to y (`mode` "set") or has y added (`mode` "add").

    Inputs: x, y, then the scalars of the pattern.  y has x's dtype and the rank of x[pattern]; each of its sizes is 1 (it is
    repeated) or that of the region, which is found and checked at run time where bounds are inputs: a ShapeError where it
    does not fit.  The result has x's type.  No element is written twice.
    """

    pattern: Pattern
    mode: Literal["set", "add"]

    def infer(self, x: TensorType, y: TensorType, *scalars: TensorType) -> tuple[TensorType, ...]:
        check_scalars(self.pattern, scalars)
        check_fits_region("the index", x, region_shape(self.pattern, x), y)
        return (x,)

    def grad(self, apply: Apply, cotangents: Sequence[Variable | None]) -> Sequence[Variable | None]:
        from .unbroadcast import unbroadcast

        (gz,) = cotangents
        _, y, *scalars = apply.inputs
        if gz is None:
            return (None,) * len(apply.inputs)
        gy = unbroadcast(apply_op(Subtensor(self.pattern), gz, *scalars), y)
        gx = gz if self.mode == "add" else apply_op(self, gz, nothing(gz.dtype, y.ndim), *scalars)
        return (gx, gy, *(None for _ in scalars))

    def reference(self, x: Array, y: Array, *scalars: Array) -> tuple[Array, ...]:
        result = array_module(x).array(x)
        index = numpy_index(self.pattern, scalars, x.shape)
        x_type, y_type = TensorType(x.dtype.name, x.shape), TensorType(y.dtype.name, y.shape)
        check_fits_region("the index", x_type, result[index].shape, y_type)
        result[index] = y if self.mode == "set" else result[index] + y
        return (result,)

    def __str__(self) -> str:
        return f"{'Set' if self.mode == 'set' else 'Inc'}Subtensor{{{pattern_text(self.pattern)}}}"


def check_fits_region(what: str, x: TensorType, region: Sequence[int | None], y: TensorType) -> None:
    """That y has x's dtype, the region's rank, and on each axis the region's size or 1."""
    if y.dtype != x.dtype or y.ndim != len(region):
        raise GraphTypeError(explain_error(f"{what} sets a region of {x.with_shape(region)}", str(y),
                                           "give a value of the same dtype and rank"))
    for axis, (size, wanted) in enumerate(zip(y.shape, region, strict=True)):
        if size is not None and wanted is not None and size not in (1, wanted):
            wrong = f"the value does not broadcast to the region: size {size} on axis {axis}, not {wanted}"
            raise ShapeError(explain_error(wrong, f"a region {x.with_shape(region)} of {x}, a value {y}"))


def nothing(dtype: str, ndim: int) -> Variable:
    """A zero with `ndim` axes of size 1."""
    from .constants import constant

    return constant(np.zeros((1,) * ndim), dtype)
