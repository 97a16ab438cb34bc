"""Laws that need static shapes everywhere: broadcasts and sums that turn out to be something simpler. Exact.

    sum_to(g, x) = g, or a plain sum over the axes that were stretched
    f(broadcast(x), y) = f(x, y) where y keeps the shape; f(broadcast(x), broadcast(y)) = broadcast(f(x, y)) (less work)
    dimshuffle(f(x, y)) = f(dimshuffle(x), dimshuffle(y)) where only axes of size 1 come and go and nothing else reads
    f(x, y), so that chains of elementwise operations are not torn apart
    reduce(broadcast(x)) stays: a sum over n equal numbers rounds as the sum does
"""
from __future__ import annotations

from ..graph import Apply, Variable, apply_op
from ..ops.elementwise import Elementwise
from ..ops.shape import BroadcastTo, DimShuffle, broadcast_to, dimshuffle
from ..ops.unbroadcast import SumTo
from .context import Context
from .rule import Answer, Rule, rule


@rule(SumTo)
def lower_sum_to(node: Apply, context: Context) -> Answer:
    """A sum over what was stretched, now that the shapes say what was."""
    op: SumTo = node.op  # type: ignore[assignment]
    g, like = node.inputs
    if not (g.type.is_static and like.type.is_static):
        return None
    reduction = op.lower([g.type, like.type])
    return g if reduction is None else apply_op(reduction, g)


def _source(variable: Variable) -> Variable:
    """What a broadcast variable is a broadcast of, else the variable itself."""
    node = variable.apply
    return node.inputs[0] if node is not None and isinstance(node.op, BroadcastTo) else variable


@rule(Elementwise, reads=BroadcastTo)
def drop_broadcast_operand(node: Apply, context: Context) -> Answer:
    """f(broadcast(x), y) = f(x, y); the result is broadcast where nothing else gives it its shape."""
    (result,) = node.outputs
    sources = [_source(each) for each in node.inputs]
    if not result.type.is_static or all(a is b for a, b in zip(sources, node.inputs, strict=True)):
        return None
    small = apply_op(node.op, *sources)
    return small if small.type == result.type else broadcast_to(small, result.type.static_shape)


@rule(DimShuffle, reads=Elementwise)
def lift_dimshuffle(node: Apply, context: Context) -> Answer:
    """dimshuffle(f(x, y)) = f(dimshuffle(x), dimshuffle(y))"""
    op: DimShuffle = node.op  # type: ignore[assignment]
    (x,) = node.inputs
    kept = [axis for axis in op.pattern if axis is not None]
    below = x.apply
    if below is None or not isinstance(below.op, Elementwise) or kept != sorted(kept):
        return None
    if not x.type.is_static or not context.has_one_reader(x):
        return None
    return apply_op(below.op, *(_shuffled_operand(each, op) for each in below.inputs))


def _shuffled_operand(operand: Variable, op: DimShuffle) -> Variable:
    """An operand of an elementwise node of rank `op.ndim`, with the axes that a dimshuffle of the node's result has."""
    lead = op.ndim - operand.ndim
    pattern = ["x" if axis is None or axis < lead else axis - lead for axis in op.pattern]
    return dimshuffle(operand, pattern)


RULES: tuple[Rule, ...] = (lower_sum_to, drop_broadcast_operand, lift_dimshuffle)
