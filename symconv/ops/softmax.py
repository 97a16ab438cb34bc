"""Softmax and its logarithm along one axis, and their gradients.

    Softmax(x)                 exp(x - max x) / Σ exp(x - max x)
    LogSoftmax(x)              x - max x - log Σ exp(x - max x)
    SoftmaxGrad(gy, y)         (gy - Σ gy·y)·y          y: the softmax
    LogSoftmaxGrad(gy, y)      gy - exp(y)·Σ gy         y: the log-softmax

The first gradients are ops, for a kernel reads a row once and keeps it in cache for the sum and for the result; the second
are expressions.  float16 and bfloat16 are computed in float32.  Infinities and NaN give what `scipy.special` gives: a row
that holds NaN, +∞ or nothing but -∞ has a softmax of NaN, and a log-softmax of NaN (but -∞ for the finite elements beside
an +∞).
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import dtypes
from ..errors import GraphTypeError, ShapeError, explain_error
from ..graph import Apply, Op, TensorType, Variable, apply_op
from .axes import normalize_axis
from .constants import as_variable
from .elementwise import cast, exp
from .promotion import float_dtype

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Softmax(Op):
    """Softmax along `axis`, counted from 0. Takes floats."""

    axis: int

    def infer(self, x: TensorType) -> tuple[TensorType, ...]:
        _check(self, self.axis, x)
        return (x,)

    def grad(self, apply: Apply, cotangents: Sequence[Variable | None]) -> Sequence[Variable | None]:
        (gy,), (y,) = cotangents, apply.outputs
        return (None if gy is None else apply_op(SoftmaxGrad(self.axis), gy, y),)

    def reference(self, x: Array) -> tuple[Array, ...]:
        if x.size == 0:
            return (x.copy(),)
        wide = _wide(x)
        powers = np.exp(wide - wide.max(self.axis, keepdims=True))
        return ((powers / powers.sum(self.axis, keepdims=True)).astype(x.dtype),)

    def __str__(self) -> str:
        return f"Softmax{{axis={self.axis}}}"


@dataclass(frozen=True, slots=True)
class LogSoftmax(Op):
    """Logarithm of the softmax along `axis`, counted from 0. Takes floats."""

    axis: int

    def infer(self, x: TensorType) -> tuple[TensorType, ...]:
        _check(self, self.axis, x)
        return (x,)

    def grad(self, apply: Apply, cotangents: Sequence[Variable | None]) -> Sequence[Variable | None]:
        (gy,), (y,) = cotangents, apply.outputs
        return (None if gy is None else apply_op(LogSoftmaxGrad(self.axis), gy, y),)

    def reference(self, x: Array) -> tuple[Array, ...]:
        if x.size == 0:
            return (x.copy(),)
        wide = _wide(x)
        largest = wide.max(self.axis, keepdims=True)
        shifted = wide - np.where(np.isfinite(largest), largest, 0)
        return ((shifted - np.log(np.exp(shifted).sum(self.axis, keepdims=True))).astype(x.dtype),)

    def __str__(self) -> str:
        return f"LogSoftmax{{axis={self.axis}}}"


@dataclass(frozen=True, slots=True)
class SoftmaxGrad(Op):
    """(gy, y) → gradient of softmax in its input, y being the softmax: (gy - Σ gy·y)·y."""

    axis: int

    def infer(self, gy: TensorType, y: TensorType) -> tuple[TensorType, ...]:
        return (_met(self, self.axis, gy, y),)

    def grad(self, apply: Apply, cotangents: Sequence[Variable | None]) -> Sequence[Variable | None]:
        (gy, y), (g,) = apply.inputs, cotangents
        if g is None:
            return (None, None)
        along_g = (g * y).sum(self.axis, keepdims=True)
        along_gy = (gy * y).sum(self.axis, keepdims=True)
        return (apply_op(self, g, y), g * (gy - along_gy) - gy * along_g)

    def reference(self, gy: Array, y: Array) -> tuple[Array, ...]:
        wide, slope = _wide(y), _wide(gy)
        return (((slope - (slope * wide).sum(self.axis, keepdims=True)) * wide).astype(y.dtype),)

    def __str__(self) -> str:
        return f"SoftmaxGrad{{axis={self.axis}}}"


@dataclass(frozen=True, slots=True)
class LogSoftmaxGrad(Op):
    """(gy, y) → gradient of log-softmax in its input, y being the log-softmax: gy - exp(y)·Σ gy."""

    axis: int

    def infer(self, gy: TensorType, y: TensorType) -> tuple[TensorType, ...]:
        return (_met(self, self.axis, gy, y),)

    def grad(self, apply: Apply, cotangents: Sequence[Variable | None]) -> Sequence[Variable | None]:
        (gy, y), (g,) = apply.inputs, cotangents
        if g is None:
            return (None, None)
        weighted = g * exp(y)
        return (g - weighted.sum(self.axis, keepdims=True), -weighted * gy.sum(self.axis, keepdims=True))

    def reference(self, gy: Array, y: Array) -> tuple[Array, ...]:
        wide, slope = _wide(y), _wide(gy)
        return ((slope - np.exp(wide) * slope.sum(self.axis, keepdims=True)).astype(y.dtype),)

    def __str__(self) -> str:
        return f"LogSoftmaxGrad{{axis={self.axis}}}"


def softmax(x: Any, axis: int = -1) -> Variable:
    """exp(x) / Σ exp(x) along one axis, without overflow. Integers become floats. Theano's softmax took matrices only.

    Raises ArgumentError where `x` has no such axis.
    """
    return _along(Softmax, x, axis)


def log_softmax(x: Any, axis: int = -1) -> Variable:
    """The logarithm of `softmax(x, axis)`, exact also where the softmax is too small for a float."""
    return _along(LogSoftmax, x, axis)


def _along(op: type[Softmax] | type[LogSoftmax], x: Any, axis: int) -> Variable:
    variable = as_variable(x)
    return apply_op(op(normalize_axis(axis, variable.ndim)), cast(variable, float_dtype(variable.dtype)))


def _wide(array: Array) -> Array:
    return array.astype(dtypes.accumulator(array.dtype.name))


def _check(op: Op, axis: int, x: TensorType) -> None:
    if not dtypes.is_float(x.dtype):
        raise GraphTypeError(explain_error(f"{op.name} takes floats", str(x), 'cast the input: x.astype("float32")'))
    if axis >= x.ndim:
        raise GraphTypeError(explain_error(f"{op.name} along axis {axis} needs a rank above {axis}", str(x)))


def _met(op: Op, axis: int, gy: TensorType, y: TensorType) -> TensorType:
    _check(op, axis, y)
    if not y.accepts(gy):
        raise ShapeError(explain_error(f"the two inputs of {op.name} must have one type", f"{gy} and {y}"))
    return y.meet(gy)
