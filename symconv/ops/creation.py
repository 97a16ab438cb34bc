"""Tensors made from sizes and numbers: `ARange`, `Eye`, and the builders of constant, triangular and one-hot tensors.

Filled tensors are broadcast scalars, so that they need no op of their own.
"""
from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from .. import dtypes
from ..config import config
from ..errors import ArgumentError, GraphTypeError, ShapeError, explain_error
from ..graph import Apply, Constant, Op, TensorType, Variable, apply_op
from ..graph.node import Array
from .array_module import array_module
from .constants import as_variable, constant
from .elementwise import eq, where
from .promotion import common_dtype
from .shape import Size, broadcast_to, dimshuffle, shape_sizes
from .sizes import as_size, known_scalar


@dataclass(frozen=True, slots=True)
class ARange(Op):
    """start, start + step, … before stop, as a vector [n] with n = max(0, ⌈(stop - start) / step⌉).

    Inputs: start, stop, step, all int64 scalars where `dtype` is an integer type, else all float64 scalars.  Element i is
    start + i·step, computed in that wide type and then rounded to `dtype`.  `known` is n where it was known when built.
    """

    dtype: str
    known: int | None = None
    value_inputs: ClassVar[tuple[int, ...]] = (0, 1, 2)

    @property
    def wide(self) -> str:
        """The dtype of the inputs."""
        return "float64" if dtypes.is_float(self.dtype) else "int64"

    def infer(self, start: TensorType, stop: TensorType, step: TensorType) -> tuple[TensorType, ...]:
        if any(each != TensorType(self.wide, ()) for each in (start, stop, step)):
            raise GraphTypeError(explain_error(f"arange of {self.dtype} takes {self.wide} scalars",
                                               f"{start}, {stop}, {step}"))
        return (TensorType(self.dtype, (self.known,)),)

    def infer_bound(self, types: Sequence[TensorType], values: Mapping[int, Array]) -> tuple[TensorType, ...]:
        return (TensorType(self.dtype, (arange_length(*(values[number].item() for number in range(3))),)),)

    def grad(self, apply: Apply, cotangents: Sequence[Variable | None]) -> Sequence[Variable | None]:
        (gz,) = cotangents
        if gz is None or not dtypes.is_float(self.dtype):
            return (None, None, None)
        places = arange(apply.outputs[0].shape[0]).astype(self.dtype)
        return (gz.sum().astype(self.wide), None, (gz * places).sum().astype(self.wide))

    def reference(self, start: Array, stop: Array, step: Array) -> tuple[Array, ...]:
        length = arange_length(start.item(), stop.item(), step.item())
        return ((start + array_module(start).arange(length).astype(self.wide) * step).astype(dtypes.numpy_dtype(self.dtype)),)


def arange_length(start: float, stop: float, step: float) -> int:
    """How many numbers lie from start to before stop.

    >>> arange_length(0, 10, 3), arange_length(5, 0, -2), arange_length(3, 3, 1)
    (4, 3, 0)
    """
    if step == 0:
        raise ArgumentError(explain_error("the step of arange can not be 0", f"arange({start}, {stop}, {step})"))
    if isinstance(start, int) and isinstance(stop, int) and isinstance(step, int):
        return max(0, -((start - stop) // step))
    length = (stop - start) / step
    if not math.isfinite(length):
        raise ArgumentError(explain_error("arange needs finite numbers", f"arange({start}, {stop}, {step})"))
    return max(0, math.ceil(length))


def arange(start: Any, stop: Any = None, step: Any = 1, dtype: Any = None) -> Variable:
    """Evenly spaced numbers [n] from start (0 when one number is given) to before stop, as NumPy's arange.

    All may be symbolic scalars.  `dtype`: by default that in which they meet (int64 for Python ints).

    >>> arange(2, 11, 3).type, arange(4, dtype="float32").type.shape
    (TensorType(dtype='int64', shape=(3,)), (4,))
    """
    if stop is None:
        start, stop = 0, start
    numbers = [as_variable(each, "float64") if type(each) is float else as_variable(each) for each in (start, stop, step)]
    if any(each.ndim for each in numbers):
        raise GraphTypeError(explain_error("arange takes scalars", ", ".join(str(each.type) for each in numbers)))
    name = common_dtype((start, stop, step)) if dtype is None else dtypes.canonical(dtype)
    wide = "float64" if dtypes.is_float(name) else "int64"
    if wide == "int64" and any(dtypes.is_float(each.dtype) for each in numbers):
        raise GraphTypeError(explain_error(f"arange of {name} takes integers", ", ".join(str(each.type) for each in numbers),
                                           "cast them, or ask for a float dtype and cast the result"))
    inputs = [as_variable(each, wide) for each in numbers]
    return apply_op(ARange(name, _known_length(inputs, numbers)), *inputs)


def _known_length(inputs: Sequence[Variable], numbers: Sequence[Variable]) -> int | None:
    values: list[Any] = []
    for wide, number in zip(inputs, numbers, strict=True):
        if dtypes.is_float(wide.dtype):
            value = number.data.item() if isinstance(number, Constant) else None
            values.append(None if value is None else float(value))
        else:
            values.append(known_scalar(wide))
    return None if None in values else arange_length(*values)


@dataclass(frozen=True, slots=True)
class Eye(Op):
    """An [n, m] matrix with ones where column - row = k, else zeros.

    Inputs: n, m, k, int64 scalars.  `known` are n and m where they were known when built.
    """

    dtype: str
    known: tuple[int | None, int | None] = (None, None)
    value_inputs: ClassVar[tuple[int, ...]] = (0, 1)

    def infer(self, n: TensorType, m: TensorType, k: TensorType) -> tuple[TensorType, ...]:
        if any(each != TensorType("int64", ()) for each in (n, m, k)):
            raise GraphTypeError(explain_error("eye takes int64 scalars", f"{n}, {m}, {k}"))
        return (TensorType(self.dtype, self.known),)

    def infer_bound(self, types: Sequence[TensorType], values: Mapping[int, Array]) -> tuple[TensorType, ...]:
        return (TensorType(self.dtype, _checked_eye(values[0].item(), values[1].item())),)

    def grad(self, apply: Apply, cotangents: Sequence[Variable | None]) -> Sequence[Variable | None]:
        return (None, None, None)

    def reference(self, n: Array, m: Array, k: Array) -> tuple[Array, ...]:
        rows, columns = _checked_eye(n.item(), m.item())
        return (array_module(n).eye(rows, columns, k.item(), dtype=dtypes.numpy_dtype(self.dtype)),)


def _checked_eye(n: int, m: int) -> tuple[int, int]:
    if n < 0 or m < 0:
        raise ShapeError(explain_error("eye takes sizes from 0", f"({n}, {m})"))
    return n, m


def eye(n: Any, m: Any = None, k: Any = 0, dtype: Any = None) -> Variable:
    """An [n, m] matrix (m = n by default) with ones on the k-th diagonal (above the main one for k > 0), else zeros.

    All may be symbolic integer scalars; `dtype` is `config.floatX` by default.

    >>> eye(3, 4, k=1).type.shape
    (3, 4)
    """
    rows = as_size(n, "eye")
    columns = rows if m is None else as_size(m, "eye")
    known = tuple(size if isinstance(size, int) else None for size in (rows, columns))
    if isinstance(rows, int) and isinstance(columns, int):
        _checked_eye(rows, columns)
    name = dtypes.canonical(config.floatX if dtype is None else dtype)
    numbers = [as_variable(size, "int64") for size in (rows, columns, as_size(k, "the diagonal of eye"))]
    return apply_op(Eye(name, (known[0], known[1])), *numbers)


def identity_like(x: Any, dtype: Any = None) -> Variable:
    """The matrix of the shape of the matrix x with ones on its main diagonal, in its dtype by default."""
    x = as_variable(x)
    if x.ndim != 2:
        raise GraphTypeError(explain_error("identity_like takes a matrix", str(x.type)))
    rows, columns = shape_sizes(x)
    return eye(rows, columns, 0, x.dtype if dtype is None else dtype)


def full(shape: Any, value: Any, dtype: Any = None) -> Variable:
    """A tensor of this shape (as for `reshape`) filled with `value`, which is broadcast: a scalar or any tensor that fits.

    `dtype`: that of the value by default (`config.floatX` for a Python float, int64 for an int).

    >>> full((2, 3), 0.5).type
    TensorType(dtype='float32', shape=(2, 3))
    """
    return broadcast_to(as_variable(value, dtype), shape)


def alloc(value: Any, *shape: Any, dtype: Any = None) -> Variable:
    """Theano's order of `full`: the value, then the sizes."""
    return full(shape, value, dtype)


def zeros(shape: Any, dtype: Any = None) -> Variable:
    """Zeros of this shape; `dtype` is `config.floatX` by default."""
    return full(shape, constant(0, config.floatX if dtype is None else dtype))


def ones(shape: Any, dtype: Any = None) -> Variable:
    """Ones of this shape; `dtype` is `config.floatX` by default."""
    return full(shape, constant(1, config.floatX if dtype is None else dtype))


def full_like(x: Any, value: Any, dtype: Any = None) -> Variable:
    """`value` broadcast to the shape of x, in its dtype by default."""
    x = as_variable(x)
    return full(shape_sizes(x), value, x.dtype if dtype is None else dtype)


def zeros_like(x: Any, dtype: Any = None) -> Variable:
    """Zeros of the shape and (by default) dtype of x."""
    return full_like(x, 0, dtype)


def ones_like(x: Any, dtype: Any = None) -> Variable:
    """Ones of the shape and (by default) dtype of x."""
    return full_like(x, 1, dtype)


def second(x: Any, value: Any) -> Variable:
    """`value` broadcast to the shape of x, in its own dtype (Theano's `second` and `fill`)."""
    return full(shape_sizes(as_variable(x)), value)


def one_hot(y: Any, n_classes: Any, dtype: Any = None) -> Variable:
    """Labels [...] as rows [..., n_classes] with 1 at the label and 0 elsewhere; `dtype` is `config.floatX` by default.

    A label outside 0 … n_classes - 1 gives a row of zeros.

    >>> one_hot([2, 0], 4).type.shape
    (2, 4)
    """
    y = as_variable(y)
    if not dtypes.is_integer(y.dtype):
        raise GraphTypeError(explain_error("one_hot takes integer labels", str(y.type), "cast them"))
    columns = arange(as_size(n_classes, "one_hot"))
    return eq(dimshuffle(y, [*range(y.ndim), "x"]), columns).astype(config.floatX if dtype is None else dtype)


def tri(n: Any, m: Any = None, k: Any = 0, dtype: Any = None) -> Variable:
    """An [n, m] matrix (m = n by default) with ones where column - row ≤ k, else zeros."""
    rows = as_size(n, "tri")
    columns = rows if m is None else as_size(m, "tri")
    return _below(rows, columns, k).astype(config.floatX if dtype is None else dtype)


def _below(rows: Size, columns: Size, k: Any) -> Variable:
    return arange(columns) <= dimshuffle(arange(rows), (0, "x")) + k


def tril(x: Any, k: Any = 0) -> Variable:
    """x (rank 2 or more) with zeros where column - row > k."""
    x = as_variable(x)
    return where(_below(*_matrix_sizes(x), k), x, constant(0, x.dtype))


def triu(x: Any, k: Any = 0) -> Variable:
    """x (rank 2 or more) with zeros where column - row < k."""
    x = as_variable(x)
    return where(_below(*_matrix_sizes(x), k - 1), constant(0, x.dtype), x)


def _matrix_sizes(x: Variable) -> tuple[Size, Size]:
    if x.ndim < 2:
        raise GraphTypeError(explain_error("a triangle is taken of rank 2 or more", str(x.type)))
    sizes = shape_sizes(x)
    return sizes[-2], sizes[-1]
