"""Gradients of the reductions: sum, prod, max and min (any and all have none)."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from .. import dtypes
from ..graph import Apply, Variable, apply_op
from . import elementwise as e
from .unbroadcast import broadcast_like

if TYPE_CHECKING:
    from .reductions import Reduce


def reduction_gradient(apply: Apply, cotangent: Variable | None) -> Variable | None:
    """The gradient of a plain reduction with respect to what is reduced."""
    op, x = apply.op, apply.inputs[0]
    rule = _RULES.get(op.name)
    if cotangent is None or rule is None or not dtypes.is_float(x.dtype):
        return None
    return e.cast(rule(op, x, kept(cotangent, op, x.ndim)), x.dtype)  # type: ignore[arg-type]


def kept(reduced: Variable, op: Reduce, ndim: int) -> Variable:
    """A result of the reduction with its reduced axes put back as axes of size 1."""
    if op.keepdims or not op.axes:
        return reduced
    from .shape import dimshuffle

    remaining = iter(range(reduced.ndim))
    return dimshuffle(reduced, ["x" if axis in op.axes else next(remaining) for axis in range(ndim)])


def _sum(op: Reduce, x: Variable, g: Variable) -> Variable:
    return broadcast_like(g, x)


def _prod(op: Reduce, x: Variable, g: Variable) -> Variable:
    """The product of the others: also where one factor is 0, and 0 where two are.

    It is the product of the factors that are not 0, divided by x where x is not 0, as far as no (other) factor is 0.
    """
    from .reductions import reduce

    is_zero = e.eq(x, 0)
    zeros = reduce("sum", e.cast(is_zero, "int64"), op.axes, True)
    safe = e.where(is_zero, 1, x)
    product = reduce("prod", safe, op.axes, True, op.dtype)
    alone = e.eq(zeros, e.cast(is_zero, "int64"))
    return e.where(alone, g * (product / safe), 0)


def _extremum(op: Reduce, x: Variable, g: Variable) -> Variable:
    if not op.axes:
        return g
    return e.where(first_winner(op.kind, x, op.axes), g, 0)


_RULES: dict[str, Callable[[Reduce, Variable, Variable], Variable]] = {
    "sum": _sum, "prod": _prod, "max": _extremum, "min": _extremum}


def first_winner(kind: str, x: Variable, axes: Sequence[int]) -> Variable:
    """A bool tensor that is True at the first maximum (or minimum) in row-major order of `axes`; it has the shape of x
    in these axes, and broadcasts to it.
    """
    from .creation import arange
    from .reductions import ArgReduce
    from .shape import dimshuffle, reshape, shape_sizes
    from .sizes import joined_size

    sizes = shape_sizes(x)
    others = [axis for axis in range(x.ndim) if axis not in axes]
    flat = dimshuffle(x, [*others, *axes])
    if len(axes) != 1:
        flat = reshape(flat, [*(sizes[axis] for axis in others), joined_size([sizes[axis] for axis in axes])])
    winner = apply_op(ArgReduce("arg" + kind, len(others)), flat)
    position = None
    for axis in axes:
        steps = dimshuffle(arange(sizes[axis]), [0 if other == axis else "x" for other in range(x.ndim)])
        position = steps if position is None else position * sizes[axis] + steps
    return e.eq(position, dimshuffle(winner, [others.index(axis) if axis in others else "x" for axis in range(x.ndim)]))
