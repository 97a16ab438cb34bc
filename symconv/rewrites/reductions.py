"""Reductions: none where nothing is reduced, one where two follow each other.

    reduce over no axis = x (cast to the result's dtype)      sum, max, … over axes of size 1 = dimshuffle
    sum(sum(x)) = sum(x)      max(max(x)) = max(x), and so for prod, min, any, all
    sum(x · c) = sum(x) · c and sum(-x · c) = -(sum(x) · c) where c does not change along the axes and sum(x) is computed
    anyway (once shapes are known)

Floats: merging sums changes the order of additions, so the last bits; float16 and bfloat16 lose one rounding.  A factor taken
out of a sum saves the roundings of the products; where sum(x) overflows, so does the result, also where a small factor would have
kept it finite.  So float16 sums, which overflow at 65504, are left alone; and bfloat16 ones, whose roundings are large.
"""
from __future__ import annotations

from ..graph import Apply, Variable, apply_op
from ..ops.elementwise import Elementwise, cast, neg
from ..ops.reductions import Reduce
from ..ops.shape import dimshuffle
from .context import Context
from .rule import Answer, Rule, rule


@rule(Reduce, prologue=None)
def drop_reduction(node: Apply, context: Context) -> Answer:
    """A reduction whose axes all have size 1 (or that has no axes) only drops them."""
    op: Reduce = node.op  # type: ignore[assignment]
    (x,) = node.inputs
    if any(x.type.shape[axis] != 1 for axis in op.axes):
        return None
    kept = x if op.keepdims else dimshuffle(x, [axis for axis in range(x.ndim) if axis not in op.axes])
    return _as_dtype(kept, op)


def _as_dtype(x: Variable, op: Reduce) -> Variable:
    return cast(x, op.dtype)


@rule(Reduce, prologue=None)
def merge_reductions(node: Apply, context: Context) -> Answer:
    """sum(sum(x)) = sum(x) over the axes of both"""
    op: Reduce = node.op  # type: ignore[assignment]
    below = node.inputs[0].apply
    if below is None or not isinstance(below.op, Reduce):
        return None
    inner = below.op
    if (inner.kind, inner.dtype, inner.prologue) != (op.kind, op.dtype, None) or inner.keepdims != op.keepdims:
        return None
    if not context.has_one_reader(node.inputs[0]):
        return None
    rank = below.inputs[0].ndim
    left = list(range(rank)) if inner.keepdims else [axis for axis in range(rank) if axis not in inner.axes]
    axes = tuple(sorted({*inner.axes, *(left[axis] for axis in op.axes)}))
    return apply_op(Reduce(op.kind, axes, op.keepdims, op.dtype), below.inputs[0])


@rule(Reduce, kind="sum", keepdims=True, prologue=None)
def factor_out_of_sum(node: Apply, context: Context) -> Answer:
    """sum(x · c) = sum(x) · c where c does not change along the axes and sum(x) is computed anyway"""
    op: Reduce = node.op  # type: ignore[assignment]
    product, is_negative = node.inputs[0].apply, False
    if product is not None and product.op == Elementwise("neg"):
        product, is_negative = product.inputs[0].apply, True
    if product is None or product.op != Elementwise("mul") or product.outputs[0].dtype != op.dtype:
        return None
    if op.dtype in ("float16", "bfloat16"):
        return None
    for x, factor in (product.inputs, product.inputs[::-1]):
        total = _total(x, op, context) if x.type == product.outputs[0].type else None
        if total is not None and _is_constant_along(factor, op):
            return neg(total * factor) if is_negative else total * factor
    return None


def _total(x: Variable, op: Reduce, context: Context) -> Variable | None:
    """The reduction of x, where the graph has it (it is interned: this makes no second one)."""
    return apply_op(op, x) if any(reader.op == op for reader in context.old_readers(x) or ()) else None


def _is_constant_along(factor: Variable, op: Reduce) -> bool:
    rank = op.axes[-1] + 1
    return factor.ndim >= rank and all(factor.type.shape[axis] == 1 for axis in op.axes)


RULES: tuple[Rule, ...] = (drop_reduction, merge_reductions)
BOUND_RULES: tuple[Rule, ...] = (*RULES, factor_out_of_sum)
