"""Algebraic identities that hold in floats bit for bit (but for the sign and payload of NaN), and a few to the last bit.

    x - 0 = x      x + (-0) = x      x · 1 = x      x / 1 = x      -(-x) = x      x - (-y) = x + y      x + (-y) = x - y
    where(c, x, x) = x      where(True, x, y) = x      |−x| = ||x|| = |x|      (−x)² = |x|² = x²
    max(x, x) = min(x, x) = x      relu(relu(x)) = relu(x)      cast(cast(x)) = cast(x) where the inner one loses nothing
    x > 0 = relu(x) > 0 where relu(x) is computed anyway
    max(x, a) > b = x > b for numbers a ≤ b, min(x, a) < b = x < b for a ≥ b (of clip's gradient)
    x¹ = x      x² = square(x)      x⁻¹ = 1/x      x^½ = √x for x ≥ 0      x³, x⁴ by squaring (float32 and wider: last bit)

What does not hold in floats is left alone: x · 0 (NaN, inf, -0), x - x, x / x, (x · a) · b.
x + 0 is x for integers, and for floats that cannot be -0 (-0 + 0 is +0, and 1/x tells them apart); with the constant -0, and
x - (+0), it is x for every float.
A shape may be what an operand is there for (`x * ones((5, 1))`): the operand stays unless the other surely has the
result's shape.
"""
from __future__ import annotations

import numpy as np

from .. import dtypes
from ..graph import Apply, Variable, apply_op
from ..ops import elementwise as e
from ..ops.elementwise import Elementwise
from .context import Context
from .pattern import Capture, Match, absolute, relu, scalar, square
from .rule import Answer, Rule, law, rule
from .values import is_minus_zero, is_non_negative, is_unstretched, uniform_value

x, y, c = Capture("x"), Capture("y"), Capture("c")
zero = Capture("zero", lambda variable: uniform_value(variable) == 0)


def _only(kept: Variable, node: Apply) -> Variable | None:
    return kept if is_unstretched(kept, node) else None


@law(x + zero)
def drop_added_zero(match: Match) -> Answer:
    """x + 0 = x where that keeps the sign of zero."""
    if dtypes.is_float(match.x.dtype) and not is_minus_zero(match.zero) and not is_non_negative(match.x):
        return None
    return _only(match.x, match.node)


@law(x - zero)
def drop_subtracted_zero(match: Match) -> Answer:
    """x - 0 = x, not for the constant -0."""
    return None if is_minus_zero(match.zero) else _only(match.x, match.node)


@law(x * 1)
def drop_factor_one(match: Match) -> Answer:
    """x · 1 = x"""
    return match.x


@law(x / 1)
def drop_divisor_one(match: Match) -> Answer:
    """x / 1 = x"""
    return match.x


@law(scalar("floor_div", x, 1))
def drop_floor_divisor_one(match: Match) -> Answer:
    """x // 1 = x for integers"""
    return match.x if dtypes.is_integer(match.x.dtype) else None


@law(scalar("neg", -x))
def cancel_double_negation(match: Match) -> Answer:
    """-(-x) = x"""
    return match.x


@law(x - (-y))
def subtract_negation(match: Match) -> Answer:
    """x - (-y) = x + y"""
    return match.x + match.y


@law(x + (-y))
def add_negation(match: Match) -> Answer:
    """x + (-y) = x - y"""
    return match.x - match.y


@law(x * -1)
def multiply_by_minus_one(match: Match) -> Answer:
    """x · (-1) = -x"""
    return None if dtypes.kind(match.x.dtype) == "u" else -match.x


@law(square(-x), square(absolute(x)))
def square_without_sign(match: Match) -> Answer:
    """(-x)² = |x|² = x²"""
    return e.square(match.x)


@law(absolute(-x), absolute(absolute(x)))
def absolute_without_sign(match: Match) -> Answer:
    """|-x| = ||x|| = |x|"""
    return e.abs(match.x)


@law(relu(relu(x)))
def relu_once(match: Match) -> Answer:
    """relu(relu(x)) = relu(x)"""
    return e.relu(match.x)


@rule(Elementwise, scalar="gt")
def mask_by_relu(node: Apply, context: Context) -> Answer:
    """x > 0 = relu(x) > 0 where relu(x) is computed anyway: in training x itself need not be kept then."""
    value, limit = node.inputs
    if uniform_value(limit) != 0 or not context.has_scalar("relu"):
        return None
    active = next((reader.outputs[0] for reader in context.reader_nodes(value) if reader.op == Elementwise("relu")), None)
    return None if active is None else apply_op(node.op, active, limit)


@law(scalar("gt", scalar("maximum", x, c), y), scalar("lt", scalar("minimum", x, c), y))
def compare_beyond_limit(match: Match) -> Answer:
    """max(x, a) > b = x > b for a ≤ b; min(x, a) < b = x < b for a ≥ b. NaN fails both comparisons."""
    limit, bound = uniform_value(match.c), uniform_value(match.y)
    if limit is None or bound is None or not is_unstretched(match.x, match.node):
        return None
    is_beyond = limit <= bound if match.node.op.name == "gt" else limit >= bound
    return apply_op(match.node.op, match.x, match.y) if is_beyond else None


@law(scalar("maximum", x, x), scalar("minimum", x, x), scalar("and_", x, x), scalar("or_", x, x))
def same_operand(match: Match) -> Answer:
    """max(x, x) = min(x, x) = x & x = x | x = x"""
    return match.x


@law(scalar("where", c, x, x))
def where_of_equals(match: Match) -> Answer:
    """where(c, x, x) = x"""
    return _only(match.x, match.node)


@law(scalar("where", c, x, y))
def where_of_constant(match: Match) -> Answer:
    """where(True, x, y) = x; where(False, x, y) = y"""
    condition = uniform_value(match.c)
    return None if condition is None else _only(match.x if condition else match.y, match.node)


@rule(Elementwise, scalar="cast")
def merge_casts(node: Apply, context: Context) -> Answer:
    """cast(x) = x where x has that dtype; cast(cast(x)) = cast(x) where the inner dtype holds every value of x's."""
    (inner,) = node.inputs
    if inner.dtype == node.outputs[0].dtype:
        return inner
    below = inner.apply
    if below is None or below.op != Elementwise("cast", inner.dtype) or not holds_all(inner.dtype, below.inputs[0].dtype):
        return None
    return e.cast(below.inputs[0], node.outputs[0].dtype)


_EXACT_BITS = {"bool": 1, "float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}
_EXPONENT_BITS = {"float16": 5, "bfloat16": 8, "float32": 8, "float64": 11}


def holds_all(wide: str, narrow: str) -> bool:
    """Whether every value of dtype `narrow` is a value of `wide`.

    >>> holds_all("float64", "int32"), holds_all("float32", "int32"), holds_all("int64", "uint8")
    (True, False, True)
    """
    if narrow in ("bool", wide):
        return wide != "bool" or narrow == "bool"
    if dtypes.is_float(wide):
        if dtypes.is_float(narrow):
            return _EXACT_BITS[wide] >= _EXACT_BITS[narrow] and _EXPONENT_BITS[wide] >= _EXPONENT_BITS[narrow]
        return 8 * dtypes.itemsize(narrow) <= _EXACT_BITS[wide] and wide != "float16"
    return not dtypes.is_float(narrow) and wide != "bool" and bool(np.can_cast(narrow, wide))


@rule(Elementwise, scalar="pow")
def simplify_power(node: Apply, context: Context) -> Answer:
    """x¹, x², x³, x⁴, x⁻¹, x^½ without pow."""
    base, exponent = node.inputs
    value = uniform_value(exponent)
    if value is None or not is_unstretched(base, node):
        return None
    if value == 1:
        return base
    if value == 2:
        return e.square(base)
    if value in (3, 4) and base.dtype not in ("float16", "bfloat16"):
        return e.square(base) * base if value == 3 else e.square(e.square(base))
    if value == -1 and dtypes.is_float(base.dtype):
        return e.reciprocal(base)
    return e.sqrt(base) if value == 0.5 and is_non_negative(base) else None


RULES: tuple[Rule, ...] = (
    drop_added_zero, drop_subtracted_zero, drop_factor_one, drop_divisor_one, drop_floor_divisor_one,
    cancel_double_negation, subtract_negation, add_negation, multiply_by_minus_one, square_without_sign,
    absolute_without_sign, relu_once, mask_by_relu, compare_beyond_limit, same_operand, where_of_equals, where_of_constant,
    merge_casts, simplify_power)
