"""Operations that read or rename shapes and compute nothing: Shape, MakeVector, Reshape, DimShuffle, BroadcastTo.

Sizes that are known when a node is built are kept in the op (`known`), so that the static type of the result is right from
the start and stays so when the graph is captured; computed sizes are read from the shape input when shapes are bound.
Make nodes with the builders (`reshape`, `dimshuffle`, `broadcast_to`), which work out `known`.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..errors import GraphTypeError, ShapeError, explain_error
from ..graph import Apply, Op, TensorType, Variable, apply_op
from ..graph.node import Array
from .array_module import array_module
from .constants import as_variable
from .shape_rules import StaticShape, check_broadcasts_to, reshaped, reshaped_strides, shape_text

Size = int | Variable


@dataclass(frozen=True, slots=True)
class Shape(Op):
    """The shape of x as an int64 vector [ndim]; it depends on the type of x only, never on its values."""

    def infer(self, x: TensorType) -> tuple[TensorType, ...]:
        return (TensorType("int64", (x.ndim,)),)

    def grad(self, apply: Apply, cotangents: Sequence[Variable | None]) -> Sequence[Variable | None]:
        return (None,)

    def reference(self, x: Array) -> tuple[Array, ...]:
        return (array_module(x).array(x.shape, dtype=np.int64),)


@dataclass(frozen=True, slots=True)
class MakeVector(Op):
    """n int64 scalars as an int64 vector [n]: the sizes of a shape that is partly computed."""

    def infer(self, *scalars: TensorType) -> tuple[TensorType, ...]:
        for number, scalar in enumerate(scalars):
            if scalar != TensorType("int64", ()):
                raise GraphTypeError(explain_error("a shape is made of int64 scalars", f"{scalar} as size {number}"))
        return (TensorType("int64", (len(scalars),)),)

    def grad(self, apply: Apply, cotangents: Sequence[Variable | None]) -> Sequence[Variable | None]:
        return (None,) * len(apply.inputs)

    def reference(self, *scalars: Array) -> tuple[Array, ...]:
        return (array_module(*scalars).array([int(scalar) for scalar in scalars], dtype=np.int64),)


def _check_shape_input(what: str, ndim: int, shape: TensorType) -> None:
    if shape.dtype != "int64" or shape.ndim != 1 or shape.shape[0] not in (None, ndim):
        raise GraphTypeError(explain_error(f"{what} to rank {ndim} takes its sizes as an int64 vector of length {ndim}",
                                           str(shape)))


def _bound_sizes(what: str, op: Reshape | BroadcastTo, sizes: Array) -> tuple[int, ...]:
    """The sizes found when shapes are bound; a ShapeError where they contradict what was known."""
    found, known = tuple(int(size) for size in sizes), op.known
    if len(found) != op.ndim:
        raise ShapeError(explain_error(f"{what} was built for rank {op.ndim}", f"the sizes {shape_text(found)}"))
    for axis, (expected, size) in enumerate(zip(known or found, found, strict=True)):
        if expected is not None and size not in (expected, -1):
            raise ShapeError(explain_error(f"{what} was built for the shape {shape_text(known or ())}",
                                           f"size {size} on axis {axis}"))
    return found


@dataclass(frozen=True, slots=True)
class Reshape(Op):
    """x with the same elements in row-major order and the sizes of an int64 vector [ndim], of which one may be -1.

    Inputs: x, sizes.  `known` are the sizes of the result that were known when the node was built (None: none of them).
    """

    ndim: int
    known: StaticShape | None = None
    value_inputs: ClassVar[tuple[int, ...]] = (1,)

    def infer(self, x: TensorType, shape: TensorType) -> tuple[TensorType, ...]:
        _check_shape_input("a reshape", self.ndim, shape)
        return (x.with_shape(reshaped(x.shape, self.known or (None,) * self.ndim)),)

    def infer_bound(self, types: Sequence[TensorType], values: Mapping[int, Array]) -> tuple[TensorType, ...]:
        return (types[0].with_shape(reshaped(types[0].shape, _bound_sizes("a reshape", self, values[1]))),)

    def grad(self, apply: Apply, cotangents: Sequence[Variable | None]) -> Sequence[Variable | None]:
        (gz,) = cotangents
        return (None if gz is None else reshape_like(gz, apply.inputs[0]), None)

    def reference(self, x: Array, shape: Array) -> tuple[Array, ...]:
        (result,) = self.infer_bound([TensorType(x.dtype.name, x.shape)], {1: shape})
        return (x.reshape(result.static_shape),)

    def view(self, shape: tuple[int, ...], strides: tuple[int, ...], result_shape: tuple[int, ...],
             constants: Mapping[int, Array]) -> tuple[int, tuple[int, ...]] | None:
        result = reshaped_strides(shape, strides, result_shape)
        return None if result is None else (0, result)

    def __str__(self) -> str:
        return f"Reshape{{{shape_text(self.known or (None,) * self.ndim)}}}"


@dataclass(frozen=True, slots=True)
class DimShuffle(Op):
    """Axes of x (of rank `ndim`) in the order of `pattern`; None inserts an axis of size 1.

    An axis that the pattern leaves out must have size 1: a ShapeError when its static or bound size is another.
    """

    pattern: tuple[int | None, ...]
    ndim: int

    @property
    def dropped(self) -> tuple[int, ...]:
        """The axes that are left out."""
        return tuple(axis for axis in range(self.ndim) if axis not in self.pattern)

    def infer(self, x: TensorType) -> tuple[TensorType, ...]:
        kept = [axis for axis in self.pattern if axis is not None]
        if x.ndim != self.ndim or len(set(kept)) != len(kept) or any(not 0 <= axis < x.ndim for axis in kept):
            wrong = f"a dimshuffle of rank {self.ndim} to {_pattern_text(self.pattern)} is impossible"
            raise GraphTypeError(explain_error(wrong, str(x), "name each axis at most once, 'x' for a new one"))
        for axis in self.dropped:
            if x.shape[axis] not in (None, 1):
                raise ShapeError(explain_error(f"axis {axis} is dropped, so its size must be 1",
                                               f"size {x.shape[axis]} in {x}, dimshuffle{_pattern_text(self.pattern)}"))
        return (x.with_shape([1 if axis is None else x.shape[axis] for axis in self.pattern]),)

    def grad(self, apply: Apply, cotangents: Sequence[Variable | None]) -> Sequence[Variable | None]:
        (gz,) = cotangents
        if gz is None:
            return (None,)
        back = tuple(self.pattern.index(axis) if axis in self.pattern else None for axis in range(self.ndim))
        return (dimshuffle(gz, back),)

    def reference(self, x: Array) -> tuple[Array, ...]:
        (result,) = self.infer(TensorType(x.dtype.name, x.shape))
        kept = [axis for axis in self.pattern if axis is not None]
        return (np.transpose(x, (*kept, *self.dropped)).reshape(result.static_shape),)

    def view(self, shape: tuple[int, ...], strides: tuple[int, ...], result_shape: tuple[int, ...],
             constants: Mapping[int, Array]) -> tuple[int, tuple[int, ...]] | None:
        return 0, tuple(0 if axis is None else strides[axis] for axis in self.pattern)

    def __str__(self) -> str:
        return f"DimShuffle{{{_pattern_text(self.pattern)}}}"


def _pattern_text(pattern: Sequence[int | None]) -> str:
    return f"({', '.join('x' if axis is None else str(axis) for axis in pattern)})"


@dataclass(frozen=True, slots=True)
class BroadcastTo(Op):
    """x repeated, as NumPy broadcasts, to the sizes of an int64 vector [ndim].

    Inputs: x, sizes.  `known` are the sizes of the result that were known when the node was built (None: none of them).
    """

    ndim: int
    known: StaticShape | None = None
    value_inputs: ClassVar[tuple[int, ...]] = (1,)

    def infer(self, x: TensorType, shape: TensorType) -> tuple[TensorType, ...]:
        _check_shape_input("a broadcast", self.ndim, shape)
        known = self.known or (None,) * self.ndim
        check_broadcasts_to(x.shape, known)
        return (x.with_shape(known),)

    def infer_bound(self, types: Sequence[TensorType], values: Mapping[int, Array]) -> tuple[TensorType, ...]:
        sizes = _bound_sizes("a broadcast", self, values[1])
        if any(size < 0 for size in sizes):
            raise ShapeError(explain_error("a broadcast takes sizes from 0", shape_text(sizes)))
        check_broadcasts_to(types[0].shape, sizes)
        return (types[0].with_shape(sizes),)

    def grad(self, apply: Apply, cotangents: Sequence[Variable | None]) -> Sequence[Variable | None]:
        from .unbroadcast import unbroadcast

        (gz,) = cotangents
        return (None if gz is None else unbroadcast(gz, apply.inputs[0]), None)

    def reference(self, x: Array, shape: Array) -> tuple[Array, ...]:
        (result,) = self.infer_bound([TensorType(x.dtype.name, x.shape)], {1: shape})
        return (array_module(x).array(np.broadcast_to(x, result.static_shape), order="C"),)

    def view(self, shape: tuple[int, ...], strides: tuple[int, ...], result_shape: tuple[int, ...],
             constants: Mapping[int, Array]) -> tuple[int, tuple[int, ...]] | None:
        added = len(result_shape) - len(shape)
        pairs = zip(shape, result_shape[added:], strides, strict=True)
        return 0, (0,) * added + tuple(stride if size == wanted else 0 for size, wanted, stride in pairs)

    def __str__(self) -> str:
        return f"BroadcastTo{{{shape_text(self.known or (None,) * self.ndim)}}}"


def shape(x: Any) -> Variable:
    """The shape of x as a symbolic int64 vector [ndim]; a constant where every size is static."""
    from .sizes import size_vector

    x = as_variable(x)
    return size_vector(x.type.static_shape) if x.type.is_static else apply_op(Shape(), x)


def shape_sizes(x: Variable) -> tuple[Size, ...]:
    """The sizes of x: ints where they are static, else `x.shape[axis]`."""
    return tuple(size_of(x, axis) for axis in range(x.ndim))


def size_of(x: Variable, axis: int) -> Size:
    """The size of one axis."""
    from .basic_indexing import Subtensor

    size = x.type.shape[axis]
    return apply_op(Subtensor((axis,)), apply_op(Shape(), x)) if size is None else size


def reshape(x: Any, shape: Any, ndim: int | None = None) -> Variable:
    """x with the same elements in row-major order in another shape.

    `shape` is a size or a sequence of sizes: ints (one may be -1: what remains), symbolic integer scalars such as
    `y.shape[0]`; or a symbolic integer vector.  `ndim` is needed where the length of such a vector is not static.  Raises
    ShapeError where sizes do not fit.

    >>> reshape(np.zeros((2, 6)), (3, -1)).type.shape
    (3, 4)
    """
    from .sizes import as_sizes, known_sizes, rest_of, size_vector

    x = as_variable(x)
    if ndim is not None and isinstance(shape, Variable) and shape.type.shape == (None,):
        return apply_op(Reshape(ndim), x, shape.astype("int64"))
    sizes = as_sizes(shape, "a reshape")
    if ndim not in (None, len(sizes)):
        raise ShapeError(explain_error(f"a new shape of {ndim} sizes was announced", f"{len(sizes)} sizes"))
    known = reshaped(x.type.shape, known_sizes(sizes))
    if None in known:
        known = rest_of(x, sizes, known)
    exact = [new if new is not None else old for new, old in zip(known, sizes, strict=True)]
    return apply_op(Reshape(len(known), _kept(known)), x, size_vector(exact))


def _kept(known: StaticShape) -> StaticShape | None:
    return known if any(size is not None for size in known) or not known else None


def reshape_like(x: Variable, other: Variable) -> Variable:
    """x in the shape of `other`, which has as many elements."""
    return reshape(x, shape_sizes(other))


def flatten(x: Any, ndim: int = 1, outdim: int | None = None) -> Variable:
    """The first ndim - 1 axes kept and all others joined into one (of size 1 where there is none).

    `outdim` is Theano's older name of `ndim`.

    >>> flatten(np.zeros((2, 3, 4)), 2).type.shape
    (2, 12)
    """
    from .sizes import joined_size

    x, ndim = as_variable(x), ndim if outdim is None else outdim
    if ndim < 1 or ndim > x.ndim + 1:
        raise ShapeError(explain_error(f"flatten to {ndim} axes is impossible", str(x.type), f"use 1 to {x.ndim + 1}"))
    sizes = shape_sizes(x)
    return reshape(x, (*sizes[:ndim - 1], joined_size(sizes[ndim - 1:])))


def dimshuffle(x: Any, pattern: Sequence[Any]) -> Variable:
    """Axes in the order of `pattern`: numbers, and "x" (or None) for a new axis of size 1; those left out must have size 1.

    The pattern that changes nothing gives x itself.

    >>> dimshuffle(np.zeros((2, 3)), ("x", 1, "x", 0)).type.shape
    (1, 3, 1, 2)
    """
    from .axes import normalize_axis

    x = as_variable(x)
    axes = tuple(None if axis is None or axis == "x" else normalize_axis(axis, x.ndim) for axis in pattern)
    return x if axes == tuple(range(x.ndim)) else apply_op(DimShuffle(axes, x.ndim), x)


def broadcast_to(x: Any, shape: Any) -> Variable:
    """x repeated to `shape` by NumPy's rules; `shape` as for `reshape`, without -1.

    >>> broadcast_to(np.zeros((3, 1)), (2, 3, 4)).type.shape
    (2, 3, 4)
    """
    from .sizes import as_sizes, known_sizes, size_vector

    x = as_variable(x)
    sizes = as_sizes(shape, "a broadcast")
    known = tuple(known_sizes(sizes))
    if any(size is not None and size < 0 for size in known):
        raise ShapeError(explain_error("a broadcast takes sizes from 0", f"from {x.type} to {shape_text(known)}"))
    if x.type.is_static and x.type.shape == known:
        return x
    return apply_op(BroadcastTo(len(known), _kept(known)), x, size_vector(sizes))
