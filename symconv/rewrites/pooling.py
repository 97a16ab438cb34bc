"""Max pooling's gradient gets smaller work: masks and sums go from its image to its windows. The mask is exact.

    where(x > 0, pool'(x, g), 0) = pool'(x, where(pool(x) > 0, g, 0)) where pool(x) is computed anyway
    Σ pool'(x, g) = Σ g over axes that include the pooled ones

pool'(x, g) adds each g at one element of its window, which has the value that pool(x) has for the window: so the mask by
x > 0 is the mask by pool(x) > 0, also for NaN, and no g is lost from the sum.  The first is the gradient of relu before max
pooling, the second that of a bias.

Floats: the sum adds the same numbers in another order.
"""
from __future__ import annotations

from ..graph import Apply, Variable, apply_op
from ..ops import elementwise as e
from ..ops.elementwise import Elementwise
from ..ops.pooling import MaxPoolGrad, Pool
from ..ops.reductions import Reduce
from .context import Context
from .rule import Answer, Rule, Skip, rule
from .values import is_minus_zero, uniform_value


@rule(Elementwise, scalar="where")
def mask_after_pooling(node: Apply, context: Context) -> Answer:
    """where(x > 0, pool'(x, g), 0) = pool'(x, where(pool(x) > 0, g, 0))"""
    condition, value, other = node.inputs
    gradient = _pool_gradient(value)
    if gradient is None or uniform_value(other) != 0 or is_minus_zero(other):
        return None
    x, g = gradient.inputs
    if not _is_positive(condition, x) or node.outputs[0].type != x.type:
        return None
    if not context.has_one_reader(value):
        return Skip("the gradient of the pooling is read elsewhere too")
    pooled = _pooled(gradient, context)
    if pooled is None:
        return Skip("the result of the pooling is not computed")
    return apply_op(gradient.op, x, e.where(e.gt(pooled, 0), g, 0))


@rule(Reduce, kind="sum", prologue=None)
def sum_before_pooling(node: Apply, context: Context) -> Answer:
    """Σ pool'(x, g) = Σ g over axes that include the pooled ones"""
    op: Reduce = node.op  # type: ignore[assignment]
    gradient = _pool_gradient(node.inputs[0])
    if gradient is None:
        return None
    x, g = gradient.inputs
    pool: Pool = gradient.op.pool  # type: ignore[attr-defined]
    if not set(range(x.ndim - pool.rank, x.ndim)) <= set(op.axes):
        return None
    return apply_op(op, g)


def _pool_gradient(variable: Variable) -> Apply | None:
    node = variable.apply
    return node if node is not None and isinstance(node.op, MaxPoolGrad) else None


def _is_positive(condition: Variable, x: Variable) -> bool:
    """Whether a condition is x > 0."""
    node = condition.apply
    if node is None or node.op != Elementwise("gt"):
        return False
    return node.inputs[0] is x and uniform_value(node.inputs[1]) == 0


def _pooled(gradient: Apply, context: Context) -> Variable | None:
    """The result of the pooling whose gradient a node is, where the graph has it (it is interned: this makes no second one)."""
    op: MaxPoolGrad = gradient.op  # type: ignore[assignment]
    x = gradient.inputs[0]
    return apply_op(op.pool, x) if any(reader.op == op.pool for reader in context.old_readers(x) or ()) else None


RULES: tuple[Rule, ...] = (mask_after_pooling, sum_before_pooling)
