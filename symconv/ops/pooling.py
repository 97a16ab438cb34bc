"""Pooling over the last one to three axes, and its gradients of every order.

    Pool(x)                    the largest element, the sum or the average of every window
    MaxPoolGrad(x, gz)         every gz added at the first maximum of its window, in row-major order of the window
    MaxPoolGather(x, v)        v's elements at those same places: the adjoint of MaxPoolGrad in gz
    AveragePoolGrad(gz, shape) the adjoint of sum and average pooling

NaN counts as larger than every number, and the first NaN of a window wins.  Padding is never a maximum.  Sum pooling pads
with zeros.  `average_exc_pad` divides by the number of image elements in the window; `average_inc_pad` by the number of
elements of the padded image in it, which is the whole window but where `ignore_border=False` lets it reach over the end.
float16 and bfloat16 are summed in float32, integers in 64 bits.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from .. import dtypes
from ..errors import GraphTypeError, ShapeError, explain_error
from ..graph import Apply, Op, TensorType, Variable, apply_op
from ..graph.node import Array
from .pool_reference import gather_winners, scatter_winners, spread_averages, window_averages
from .pool_shape import pooled_size

Axes = tuple[int, ...]
MODES = ("max", "sum", "average_inc_pad", "average_exc_pad")


@dataclass(frozen=True, slots=True)
class Pool(Op):
    """Pooling of the last `len(window)` axes; the axes before them are batch axes.

    `mode` is one of `MODES`. Window, stride and padding before and after have one entry for each pooled axis.
    """

    mode: str
    window: Axes
    stride: Axes
    pad_lo: Axes
    pad_hi: Axes
    ignore_border: bool = True

    @property
    def rank(self) -> int:
        """Number of pooled axes."""
        return len(self.window)

    def output_shape(self, shape: Sequence[int | None]) -> tuple[int | None, ...]:
        """The shape of the result for an input of this shape: the one shape rule of pooling."""
        lead = len(shape) - self.rank
        rows = zip(shape[lead:], self.window, self.stride, self.pad_lo, self.pad_hi, strict=True)
        return (*shape[:lead],
                *(None if row[0] is None else pooled_size(row[0], *row[1:], self.ignore_border) for row in rows))

    def infer(self, x: TensorType) -> tuple[TensorType, ...]:
        _check_image(self, x)
        return (x.with_shape(self.output_shape(x.shape)),)

    def grad(self, apply: Apply, cotangents: Sequence[Variable | None]) -> Sequence[Variable | None]:
        (x,), (gz,) = apply.inputs, cotangents
        if gz is None:
            return (None,)
        return (max_pool_grad(self, x, gz) if self.mode == "max" else average_pool_grad(self, gz, x),)

    def reference(self, x: Array) -> tuple[Array, ...]:
        return (gather_winners(self, x, x) if self.mode == "max" else window_averages(self, x),)

    def __str__(self) -> str:
        sides = zip(self.pad_lo, self.pad_hi, strict=True)
        padding = "x".join(str(low) if low == high else f"{low}:{high}" for low, high in sides)
        return (f"Pool{{{self.mode} window={_sizes(self.window)} stride={_sizes(self.stride)} pad={padding}"
                f"{'' if self.ignore_border else ' keep_border'}}}")


@dataclass(frozen=True, slots=True)
class MaxPoolGrad(Op):
    """(x, gz) → gradient of max pooling in x: each gz is added at the first maximum of its window."""

    pool: Pool

    def infer(self, x: TensorType, gz: TensorType) -> tuple[TensorType, ...]:
        _check_image(self.pool, x)
        _check_like(self, gz, x.with_shape(self.pool.output_shape(x.shape)))
        return (x,)

    def grad(self, apply: Apply, cotangents: Sequence[Variable | None]) -> Sequence[Variable | None]:
        (x, _), (ggx,) = apply.inputs, cotangents
        return (None, None) if ggx is None else (_no_slope(x), max_pool_gather(self.pool, x, ggx))

    def reference(self, x: Array, gz: Array) -> tuple[Array, ...]:
        return (scatter_winners(self.pool, x, gz),)

    def __str__(self) -> str:
        return f"MaxPoolGrad{{{self.pool}}}"


@dataclass(frozen=True, slots=True)
class MaxPoolGather(Op):
    """(x, v) → the element of v at the first maximum of each window of x; v has the shape of x."""

    pool: Pool

    def infer(self, x: TensorType, v: TensorType) -> tuple[TensorType, ...]:
        _check_image(self.pool, x)
        _check_like(self, v, x)
        return (x.with_shape(self.pool.output_shape(x.meet(v).shape)),)

    def grad(self, apply: Apply, cotangents: Sequence[Variable | None]) -> Sequence[Variable | None]:
        (x, _), (gz,) = apply.inputs, cotangents
        return (None, None) if gz is None else (_no_slope(x), max_pool_grad(self.pool, x, gz))

    def reference(self, x: Array, v: Array) -> tuple[Array, ...]:
        return (gather_winners(self.pool, x, v),)

    def __str__(self) -> str:
        return f"MaxPoolGather{{{self.pool}}}"


@dataclass(frozen=True, slots=True)
class AveragePoolGrad(Op):
    """(gz, shape) → the adjoint of sum or average pooling: an array of that shape.

    `shape` is the int64 vector of the pooled input's shape; `known` its sizes that were known when the node was built.
    """

    pool: Pool
    known: tuple[int | None, ...]
    value_inputs: ClassVar[tuple[int, ...]] = (1,)

    def infer(self, gz: TensorType, shape: TensorType) -> tuple[TensorType, ...]:
        result = gz.with_shape(self.known)
        _check_image(self.pool, result)
        if not TensorType("int64", (len(self.known),)).accepts(shape):
            raise GraphTypeError(explain_error("the shape of a pooled input is an int64 vector of its rank", str(shape)))
        pooled = result.with_shape(self.pool.output_shape(self.known))
        _check_like(self, gz, pooled)
        lead = gz.ndim - self.pool.rank
        return (result.with_shape((*gz.meet(pooled).shape[:lead], *self.known[lead:])),)

    def infer_bound(self, types: Sequence[TensorType], values: Mapping[int, Array]) -> tuple[TensorType, ...]:
        (known,) = self.infer(*types)
        result = known.with_shape([int(size) for size in values[1]])
        if not known.accepts(result):
            raise ShapeError(explain_error(f"the gradient of pooling was built for {known}", str(result)))
        _check_like(self, types[0], result.with_shape(self.pool.output_shape(result.shape)))
        return (result,)

    def grad(self, apply: Apply, cotangents: Sequence[Variable | None]) -> Sequence[Variable | None]:
        (ggx,) = cotangents
        return (None if ggx is None else apply_op(self.pool, ggx), None)

    def reference(self, gz: Array, shape: Array) -> tuple[Array, ...]:
        return (spread_averages(self.pool, gz, tuple(int(size) for size in shape)),)

    def __str__(self) -> str:
        return f"AveragePoolGrad{{{self.pool}}}"


def max_pool_grad(pool: Pool, x: Variable, gz: Variable) -> Variable:
    """The gradient of max pooling `x`, given that of its result."""
    return apply_op(MaxPoolGrad(pool), x, gz)


def max_pool_gather(pool: Pool, x: Variable, v: Variable) -> Variable:
    """The elements of `v` where max pooling found the maxima of `x`."""
    return apply_op(MaxPoolGather(pool), x, v)


def average_pool_grad(pool: Pool, gz: Variable, x: Variable) -> Variable:
    """The gradient of sum or average pooling `x`, of which only the shape matters."""
    return apply_op(AveragePoolGrad(pool, x.static_shape), gz, x.shape)


def _no_slope(x: Variable) -> Variable:
    """Zeros of x's shape: where the maxima lie is constant almost everywhere."""
    from .creation import zeros_like

    return zeros_like(x)


def _sizes(numbers: Axes) -> str:
    return "x".join(map(str, numbers))


def _check_image(pool: Pool, x: TensorType) -> None:
    if x.ndim < pool.rank:
        raise GraphTypeError(explain_error(f"{pool.rank}-dimensional pooling needs an input of rank {pool.rank} or more",
                                           str(x), "reshape the input, or pool over fewer axes"))
    if pool.mode.startswith("average") and not dtypes.is_float(x.dtype):
        raise GraphTypeError(explain_error("average pooling needs floats", str(x), 'cast the input: x.astype("float32")'))
    if x.dtype == "bool":
        raise GraphTypeError(explain_error("pooling needs numbers", str(x), 'cast the input: x.astype("int8")'))


def _check_like(op: Op, found: TensorType, wanted: TensorType) -> None:
    if not wanted.accepts(found):
        raise ShapeError(explain_error(f"an input of {op.name} does not have the type that pooling gives",
                                       f"{found}", f"pass {wanted}"))
