"""Reductions: sum, prod, max, min, any, all; and the positions of maxima and minima.

Dtypes: sums and products of bool and signed integers are int64, of unsigned ones uint64; floats keep theirs and are
accumulated wide (float16 and bfloat16 in float32).  NaN wins in max, min, argmax and argmin.  Of an empty axis the sum is 0,
the product 1, any False, all True; max, min and arg… of it are a ShapeError.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import dtypes
from ..errors import GraphTypeError, InternalError, ShapeError, explain_error
from ..graph import Apply, Op, TensorType, Variable, apply_op
from ..graph.node import Array
from .array_module import as_array
from .axes import normalize_axes, normalize_axis
from .broadcasting import broadcast_types
from .constants import as_variable
from .scalar import ScalarProgram

REDUCTIONS: dict[str, Callable[..., Any]] = {"sum": np.sum, "prod": np.prod, "max": np.max, "min": np.min,
                                             "any": np.any, "all": np.all}
_WITHOUT_IDENTITY = ("max", "min", "argmax", "argmin")


@dataclass(frozen=True, slots=True)
class Reduce(Op):
    """The reduction `kind` over `axes` (sorted, from 0), with result dtype `dtype`.

    With a `prologue` (made by rewrites only) the inputs are broadcast together, and what the program computes of them is
    reduced; it has one output, of the dtype that is reduced.
    """

    kind: str
    axes: tuple[int, ...]
    keepdims: bool
    dtype: str
    prologue: ScalarProgram | None = None

    @property
    def name(self) -> str:
        """The kind of reduction."""
        return self.kind

    def infer(self, *types: TensorType) -> tuple[TensorType, ...]:
        """The shape without the reduced axes; ShapeError for the maximum of an axis that is known to be empty."""
        shape = broadcast_types(self.kind, types)
        if self.prologue is None and len(types) != 1:
            raise GraphTypeError(explain_error(f"{self.kind} takes one tensor", str(len(types))))
        if self.axes and not 0 <= self.axes[0] <= self.axes[-1] < len(shape):
            raise GraphTypeError(explain_error(f"{self.kind} over the axes {self.axes}", " and ".join(map(str, types))))
        check_not_empty(self.kind, shape, self.axes)
        return (TensorType(self.dtype, reduced_shape(shape, self.axes, self.keepdims)),)

    def grad(self, apply: Apply, cotangents: Sequence[Variable | None]) -> Sequence[Variable | None]:
        """By the table in `ops/reduction_gradients.py`."""
        from .reduction_gradients import reduction_gradient

        if self.prologue is not None:
            raise InternalError("a fused reduction is made after gradients are taken")
        return (reduction_gradient(apply, cotangents[0]),)

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        """NumPy's reduction in the accumulator's dtype, rounded to the result's."""
        array = inputs[0] if self.prologue is None else self._prologue_values(inputs)
        check_not_empty(self.kind, array.shape, self.axes)
        options = {} if self.kind not in ("sum", "prod") else {"dtype": dtypes.numpy_dtype(self._accumulator())}
        result = REDUCTIONS[self.kind](array, axis=self.axes, keepdims=self.keepdims, **options)
        return (as_array(result).astype(dtypes.numpy_dtype(self.dtype), copy=False),)

    def _prologue_values(self, inputs: Sequence[Array]) -> Array:
        assert self.prologue is not None
        (values,) = self.prologue.evaluate(*inputs)
        return np.broadcast_to(values, np.broadcast_shapes(*(array.shape for array in inputs)))

    def _accumulator(self) -> str:
        return dtypes.accumulator(self.dtype) if dtypes.is_float(self.dtype) else self.dtype

    def __str__(self) -> str:
        inner = f", {self.prologue}" if self.prologue is not None else ""
        return f"{self.kind}{{axes={self.axes}{', keepdims' if self.keepdims else ''}{inner}}}"


@dataclass(frozen=True, slots=True)
class ArgReduce(Op):
    """Position of the first maximum (`kind` "argmax") or minimum ("argmin") along `axis`, int64; the axis goes away."""

    kind: str
    axis: int

    @property
    def name(self) -> str:
        """The kind of search."""
        return self.kind

    def infer(self, x: TensorType) -> tuple[TensorType, ...]:
        """int64 of the shape without the axis; ShapeError for an axis that is known to be empty."""
        check_not_empty(self.kind, x.shape, (self.axis,))
        return (TensorType("int64", reduced_shape(x.shape, (self.axis,), False)),)

    def grad(self, apply: Apply, cotangents: Sequence[Variable | None]) -> Sequence[Variable | None]:
        """A position has no gradient."""
        return (None,)

    def reference(self, x: Array) -> tuple[Array, ...]:
        """NumPy's argmax or argmin."""
        check_not_empty(self.kind, x.shape, (self.axis,))
        wide = x.astype(np.float32) if x.dtype.name == "bfloat16" else x
        search = np.argmax if self.kind == "argmax" else np.argmin
        return (as_array(search(wide, axis=self.axis)).astype(np.int64, copy=False),)

    def __str__(self) -> str:
        return f"{self.kind}{{axis={self.axis}}}"


def reduced_shape(shape: Sequence[int | None], axes: Sequence[int], keepdims: bool) -> tuple[int | None, ...]:
    """The shape after a reduction.

    >>> reduced_shape((2, 3, None), (1,), False), reduced_shape((2, 3, None), (0, 1), True)
    ((2, None), (1, 1, None))
    """
    if keepdims:
        return tuple(1 if axis in axes else size for axis, size in enumerate(shape))
    return tuple(size for axis, size in enumerate(shape) if axis not in axes)


def check_not_empty(kind: str, shape: Sequence[int | None], axes: Sequence[int]) -> None:
    """A ShapeError that names the axis where `kind` has no answer for an empty one."""
    for axis in axes if kind in _WITHOUT_IDENTITY else ():
        if shape[axis] == 0:
            sizes = ", ".join("?" if size is None else str(size) for size in shape)
            raise ShapeError(explain_error(f"{kind} over axis {axis}, which is empty", f"the shape ({sizes})",
                                           "reduce an axis with at least one element"))


def sum_dtype(dtype: str) -> str:
    """The dtype of a sum or product of this dtype: floats keep theirs, integers and bool become int64 or uint64."""
    return dtype if dtypes.is_float(dtype) else dtypes.accumulator(dtype)


def reduce(kind: str, x: Any, axis: Any = None, keepdims: bool = False, dtype: str | None = None) -> Variable:
    """The node of a reduction over the axes that the user wrote; over none (also of a scalar) it is x itself, cast."""
    variable = as_variable(x)
    axes = tuple(sorted(normalize_axes(axis, variable.ndim)))
    if not axes:
        return as_variable(variable, dtype)
    return apply_op(Reduce(kind, axes, bool(keepdims), dtype or variable.dtype), variable)


def _accumulating(kind: str, x: Any, axis: Any, dtype: Any, keepdims: bool) -> Variable:
    variable = as_variable(x)
    if dtype is None:
        return reduce(kind, variable, axis, keepdims, sum_dtype(variable.dtype))
    return reduce(kind, as_variable(variable, dtype), axis, keepdims, dtypes.canonical(dtype))


def sum(x: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Variable:
    """Sum over `axis`: None (all), an int or a tuple of ints, negative ones count from the last.

    The result is int64 for bool and signed integers, uint64 for unsigned ones, else of x's dtype; with `dtype` x is cast to
    it first.  The sum of an empty axis is 0.  Raises ArgumentError for an axis that does not exist or is given twice.

    >>> sum(np.ones((2, 3), "int8"), axis=-1).type
    TensorType(dtype='int64', shape=(2,))
    """
    return _accumulating("sum", x, axis, dtype, keepdims)


def prod(x: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Variable:
    """Product over `axis`; dtypes and arguments as for `sum`. The product of an empty axis is 1.

    The gradient is right for factors of 0 too; second derivatives only where no factor is 0.
    """
    return _accumulating("prod", x, axis, dtype, keepdims)


def max(x: Any, axis: Any = None, keepdims: bool = False) -> Variable:
    """Maximum over `axis` (None: all), of x's dtype; NaN wins.

    The gradient goes to the first maximum in row-major order of the reduced axes. A ShapeError where an axis is empty.
    """
    return reduce("max", x, axis, keepdims)


def min(x: Any, axis: Any = None, keepdims: bool = False) -> Variable:
    """Minimum over `axis`; as `max`."""
    return reduce("min", x, axis, keepdims)


def any(x: Any, axis: Any = None, keepdims: bool = False) -> Variable:
    """Whether any element over `axis` is true (not 0); bool. False for an empty axis."""
    return reduce("any", as_variable(x, "bool"), axis, keepdims)


def all(x: Any, axis: Any = None, keepdims: bool = False) -> Variable:
    """Whether all elements over `axis` are true (not 0); bool. True for an empty axis."""
    return reduce("all", as_variable(x, "bool"), axis, keepdims)


def argmax(x: Any, axis: Any = None, keepdims: bool = False) -> Variable:
    """Position of the first maximum along one axis (None: in the flattened tensor), int64; NaN wins.

    A ShapeError where the axis is empty.
    """
    return _positions("argmax", x, axis, keepdims)


def argmin(x: Any, axis: Any = None, keepdims: bool = False) -> Variable:
    """Position of the first minimum along one axis; as `argmax`."""
    return _positions("argmin", x, axis, keepdims)


def _positions(kind: str, x: Any, axis: Any, keepdims: bool) -> Variable:
    from .shape import dimshuffle, reshape

    variable = as_variable(x)
    if axis is None:
        flat = variable if variable.ndim == 1 else reshape(variable, (-1,))
        found = apply_op(ArgReduce(kind, 0), flat)
        return dimshuffle(found, ("x",) * variable.ndim) if keepdims and variable.ndim else found
    number = normalize_axis(axis, variable.ndim)
    found = apply_op(ArgReduce(kind, number), variable)
    if not keepdims:
        return found
    pattern: list[int | str] = list(range(variable.ndim - 1))
    return dimshuffle(found, [*pattern[:number], "x", *pattern[number:]])
