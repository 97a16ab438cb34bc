"""Stable forms around softmax, log-sum-exp and the gradients of logarithms, however they are written.

    exp(x) / Σ exp(x) = softmax(x)      softmax(x - max x) = softmax(x)      log(softmax(x)) = log_softmax(x)
    log(Σ exp(x)) = max x + log(Σ exp(x - max x))
    exp(x) · (u / Σ exp(x)) = softmax(x) · u      sigmoid(-x) · exp(x) = sigmoid(x)
    s · (u / s) = u for s = softmax, sigmoid, exp, softplus (positive in exact arithmetic), also where the division is deep
    inside (`cancellation.py`)
    softmax'(u / s, s) = log_softmax'(u, log s)      (u / (1 + exp(x))) · exp(x) = u · sigmoid(x)

Σ over one axis for softmax, over any for the others.  log Σ exp is rewritten only where the reduced axes are known not to be
empty, for the maximum of nothing is an error and the sum of nothing is 0.

Floats: as in `stable_scalars`.
"""
from __future__ import annotations

from collections.abc import Iterator

from ..graph import Apply, Variable, apply_op
from ..ops import elementwise as e
from ..ops.elementwise import Elementwise
from ..ops.reductions import Reduce
from ..ops.shape import BroadcastTo, DimShuffle, Reshape, dimshuffle
from ..ops.softmax import LogSoftmax, LogSoftmaxGrad, Softmax, SoftmaxGrad
from ..ops.statistics import logsumexp
from ..ops.stop_gradient import StopGradient
from .cancellation import cancel, kept_pattern
from .context import Context
from .pattern import Capture, Match, exp, log, sigmoid
from .pattern import node as pattern_node
from .rule import Answer, Rule, law, rule
from .values import uniform_value

x, u = Capture("x"), Capture("u")
_POSITIVE = frozenset({"exp", "sigmoid", "softplus"})


@law(log(pattern_node(Softmax, x).called("s")))
def log_softmax(match: Match) -> Answer:
    """log(softmax(x)) = log_softmax(x)"""
    softmax = match.s.apply
    assert softmax is not None
    assert isinstance(softmax.op, Softmax)
    return apply_op(LogSoftmax(softmax.op.axis), match.x)


def sum_of_exp(variable: Variable) -> tuple[Variable, tuple[int, ...]] | None:
    """(x, axes) where a variable is Σ exp(x) over some axes of x, kept as axes of size 1."""
    node = variable.apply
    pattern: tuple[int | None, ...] | None = None
    if node is not None and isinstance(node.op, DimShuffle):
        pattern, node = node.op.pattern, node.inputs[0].apply
    if node is None or not isinstance(node.op, Reduce) or node.op.kind != "sum" or node.op.prologue is not None:
        return None
    inner = node.inputs[0].apply
    if inner is None or inner.op != Elementwise("exp"):
        return None
    return (inner.inputs[0], node.op.axes) if _keeps_axes(node.op, pattern, inner.inputs[0].ndim) else None


def _keeps_axes(op: Reduce, pattern: tuple[int | None, ...] | None, rank: int) -> bool:
    """Whether a reduction, and the dimshuffle after it, leave the reduced axes as axes of size 1 in their places."""
    if op.keepdims:
        return pattern is None
    return pattern == kept_pattern(op.axes, rank)


@law(exp(x).called("e") / u)
def quotient_as_softmax(match: Match) -> Answer:
    """exp(x) / Σ exp(x) = softmax(x)"""
    found = sum_of_exp(match.u)
    if found is None or found[0] is not match.x or len(found[1]) != 1:
        return None
    return apply_op(Softmax(found[1][0]), match.x)


@rule(Softmax)
def softmax_without_shift(node: Apply, context: Context) -> Answer:
    """softmax(x - max x) = softmax(x)"""
    op: Softmax = node.op  # type: ignore[assignment]
    shifted = node.inputs[0].apply
    if shifted is None or shifted.op != Elementwise("sub"):
        return None
    z, shift = shifted.inputs
    return apply_op(op, z) if _is_maximum(shift, z) and shift.type.shape[op.axis:op.axis + 1] == (1,) else None


def _is_maximum(shift: Variable, z: Variable) -> bool:
    """Whether `shift` is a maximum of z, perhaps guarded against infinities (`where(isfinite(m), m, 0)`)."""
    for _ in range(6):
        node = shift.apply
        if node is None:
            return False
        if isinstance(node.op, Reduce):
            return node.op.kind == "max" and node.op.prologue is None and node.inputs[0] is z
        if isinstance(node.op, (StopGradient, DimShuffle, BroadcastTo, Reshape)):
            shift = node.inputs[0]
        elif node.op == Elementwise("where"):
            shift = node.inputs[1]
        else:
            return False
    return False


@rule(Elementwise, scalar="log")
def log_sum_exp(node: Apply, context: Context) -> Answer:
    """log(Σ exp(x)) = max x + log(Σ exp(x - max x))"""
    total = node.inputs[0].apply
    if total is None or not isinstance(total.op, Reduce) or total.op.kind != "sum" or total.op.prologue is not None:
        return None
    powers = total.inputs[0].apply
    if powers is None or powers.op != Elementwise("exp"):
        return None
    z = powers.inputs[0]
    if _is_shifted(z) or any(not z.type.shape[axis] for axis in total.op.axes):
        return None
    return logsumexp(z, total.op.axes, total.op.keepdims)


def _is_shifted(z: Variable) -> bool:
    node = z.apply
    return node is not None and node.op == Elementwise("sub") and _is_maximum(node.inputs[1], node.inputs[0])


@rule(Elementwise, scalar={"mul", "masked_mul"})
def cancel_positive_factor(node: Apply, context: Context) -> Answer:
    """(u / s) · s = u and (u / s) · (s · t) = u · t"""
    for first, second in (node.inputs, node.inputs[::-1]):
        answer = _cancelled(first, second, node, context)
        if answer is not None:
            return answer
    return None


def _cancelled(quotient: Variable, factor: Variable, node: Apply, context: Context) -> Variable | None:
    """quotient · factor where the factor is s, s · t or s / t."""
    if quotient.apply is None:
        return None
    if _is_positive(factor):
        return cancel(factor, quotient, context)
    inner = factor.apply
    if inner is None or inner.op.name not in ("mul", "true_div"):
        return None
    for place, s in enumerate(inner.inputs[:1 if inner.op.name == "true_div" else 2]):
        found = cancel(s, quotient, context) if _is_positive(s) else None
        if found is not None:
            rest = inner.inputs[1 - place]
            return apply_op(inner.op, found, rest) if inner.op.name == "true_div" else apply_op(node.op, found, rest)
    return None


def _is_positive(variable: Variable) -> bool:
    node = variable.apply
    if node is None:
        return False
    return isinstance(node.op, Softmax) or (isinstance(node.op, Elementwise) and node.op.scalar in _POSITIVE)


@rule(SoftmaxGrad)
def softmax_gradient_of_log(node: Apply, context: Context) -> Answer:
    """softmax'(u / s, s) = log_softmax'(u, log s)"""
    op: SoftmaxGrad = node.op  # type: ignore[assignment]
    gy, s = node.inputs
    softmax = s.apply
    if softmax is None or not isinstance(softmax.op, Softmax) or softmax.op.axis != op.axis:
        return None
    found = cancel(s, gy, context)
    if found is None:
        return None
    return apply_op(LogSoftmaxGrad(op.axis), found, apply_op(LogSoftmax(op.axis), softmax.inputs[0]))


@law(sigmoid(-x) * exp(x))
def rising_sigmoid(match: Match) -> Answer:
    """sigmoid(-x) · exp(x) = sigmoid(x)"""
    return e.sigmoid(match.x)


@rule(Elementwise, scalar={"mul", "masked_mul"})
def cancel_sum_of_exp(node: Apply, context: Context) -> Answer:
    """exp(x) · (u / Σ exp(x)) = softmax(x) · u and exp(x) · (u / (1 + exp(x))) = sigmoid(x) · u"""
    for place, quotient in enumerate(node.inputs):
        power = node.inputs[1 - place].apply
        if quotient.apply is None or power is None or power.op != Elementwise("exp"):
            continue
        for divisor, weight in _totals(power, context):
            found = cancel(divisor, quotient, context)
            if found is not None:
                return apply_op(node.op, *((found, weight) if place == 0 else (weight, found)))
    return None


def _totals(power: Apply, context: Context) -> Iterator[tuple[Variable, Variable]]:
    """What exp(z) may be divided by in a weight between 0 and 1, and that weight: 1 + exp(z), Σ exp(z)."""
    (z,) = power.inputs
    for reader in context.reader_nodes(power.outputs[0]):
        total = reader.outputs[0]
        if reader.op == Elementwise("add") and any(uniform_value(each) == 1 for each in reader.inputs):
            yield total, e.sigmoid(z)
        elif isinstance(reader.op, Reduce) and reader.op.kind == "sum":
            weight = _weight(z, reader.op.axes)
            kept = total if reader.op.keepdims else context.intern(dimshuffle(total, kept_pattern(reader.op.axes, z.ndim)))
            if weight is not None:
                yield kept, weight


def _weight(z: Variable, axes: tuple[int, ...]) -> Variable | None:
    """exp(z) / Σ exp(z) in a stable form."""
    if len(axes) == 1:
        return apply_op(Softmax(axes[0]), z)
    if any(not z.type.shape[axis] for axis in axes):
        return None
    return e.exp(z - logsumexp(z, axes, keepdims=True))


BOUND_RULES: tuple[Rule, ...] = (log_sum_exp, cancel_sum_of_exp)
"""Those that may have to wait for the sizes of the reduced axes."""
RULES: tuple[Rule, ...] = (
    log_softmax, quotient_as_softmax, softmax_without_shift, log_sum_exp, cancel_positive_factor, softmax_gradient_of_log,
    rising_sigmoid, cancel_sum_of_exp)
