"""Stable forms of elementwise expressions, however they are written.

    log(1 + x) = log1p(x)      exp(x) - 1 = expm1(x)      1 - exp(x) = 0 - expm1(x)      log(exp(x)) = x
    log1p(exp(x)) = softplus(x)      log(sigmoid(x)) = -softplus(-x)      log1p(-sigmoid(x)) = -softplus(x)
    1 - sigmoid(x) = sigmoid(-x)      1 / (1 + exp(-x)) = exp(x) / (1 + exp(x)) = sigmoid(x)
    √(x²) = |x|      (√x)² = x for x ≥ 0
    log(move(f(x))) = move(log(f(x))) where move renames elements (transposes, reshapes, slices, indices, broadcasts) and f
    is softmax, sigmoid or exp, so that the laws above and those of `stable_softmax` meet

Floats: each right side is what the left side would be in exact arithmetic.  They differ only where the left side has lost
digits, overflowed or underflowed, and in the sign of zero where exact arithmetic has it (log1p(-0) is -0).  They hold for
constants too, so floats are folded after this phase.
"""
from __future__ import annotations

from ..graph import Apply, Variable, apply_op
from ..ops import elementwise as e
from ..ops.basic_indexing import Subtensor
from ..ops.elementwise import Elementwise
from ..ops.integer_indexing import Gather
from ..ops.shape import BroadcastTo, DimShuffle, Reshape
from ..ops.softmax import Softmax
from ..ops.specify_shape import SpecifyShape
from .context import Context
from .pattern import Capture, Match, exp, expm1, log, log1p, reciprocal, sigmoid, sqrt, square
from .rule import Answer, Rule, law, rule
from .values import is_non_negative

x = Capture("x")
MOVES = (BroadcastTo, DimShuffle, Gather, Reshape, SpecifyShape, Subtensor)


@law(log(1 + x))
def log_one_plus(match: Match) -> Answer:
    """log(1 + x) = log1p(x)"""
    return e.log1p(match.x)


@law(exp(x) - 1)
def exp_minus_one(match: Match) -> Answer:
    """exp(x) - 1 = expm1(x)"""
    return e.expm1(match.x)


@law(1 - exp(x))
def one_minus_exp(match: Match) -> Answer:
    """1 - exp(x) = 0 - expm1(x), which is +0 at 0 as the left side is."""
    return 0 - e.expm1(match.x)


@law(log(exp(x)))
def log_exp(match: Match) -> Answer:
    """log(exp(x)) = x"""
    return match.x


@law(log1p(exp(x)))
def log_one_plus_exp(match: Match) -> Answer:
    """log1p(exp(x)) = softplus(x)"""
    return e.softplus(match.x)


@law(log1p(expm1(x)))
def log1p_expm1(match: Match) -> Answer:
    """log1p(expm1(x)) = x"""
    return match.x


@law(log(sigmoid(x)))
def log_sigmoid(match: Match) -> Answer:
    """log(sigmoid(x)) = -softplus(-x)"""
    return -e.softplus(-match.x)


@law(log1p(-sigmoid(x)))
def log_one_minus_sigmoid(match: Match) -> Answer:
    """log1p(-sigmoid(x)) = -softplus(x)"""
    return -e.softplus(match.x)


@law(1 - sigmoid(x))
def one_minus_sigmoid(match: Match) -> Answer:
    """1 - sigmoid(x) = sigmoid(-x)"""
    return e.sigmoid(-match.x)


@law(1 / (1 + exp(-x)), exp(x) / (1 + exp(x)))
def quotient_as_sigmoid(match: Match) -> Answer:
    """1 / (1 + exp(-x)) = exp(x) / (1 + exp(x)) = sigmoid(x)"""
    return e.sigmoid(match.x)


@law(1 / (1 + exp(x)))
def quotient_as_falling_sigmoid(match: Match) -> Answer:
    """1 / (1 + exp(x)) = sigmoid(-x)"""
    return e.sigmoid(-match.x)


@law(reciprocal(1 + exp(x)))
def reciprocal_as_sigmoid(match: Match) -> Answer:
    """reciprocal(1 + exp(x)) = sigmoid(-x)"""
    return e.sigmoid(-match.x)


@law(sqrt(square(x)))
def root_of_square(match: Match) -> Answer:
    """√(x²) = |x|"""
    return e.abs(match.x)


@law(square(sqrt(x)))
def square_of_root(match: Match) -> Answer:
    """(√x)² = x for x ≥ 0; for other x it is NaN, which must stay."""
    return match.x if is_non_negative(match.x) else None


@rule(Elementwise, scalar={"log", "log1p"})
def log_through_moves(node: Apply, context: Context) -> Answer:
    """log(move(f(x))) = move(log(f(x)))"""
    moves, core = through_moves(node.inputs[0])
    if not moves or not _has_stable_logarithm(core):
        return None
    return replay(moves, apply_op(node.op, core))


def through_moves(variable: Variable) -> tuple[list[Apply], Variable]:
    """The moves that made a variable, last one first, and what they moved."""
    moves: list[Apply] = []
    while variable.apply is not None and isinstance(variable.apply.op, MOVES):
        moves.append(variable.apply)
        variable = variable.apply.inputs[0]
    return moves, variable


def replay(moves: list[Apply], core: Variable) -> Variable:
    """The same moves of another variable of the same shape."""
    for node in reversed(moves):
        core = apply_op(node.op, core, *node.inputs[1:])
    return core


def _has_stable_logarithm(core: Variable) -> bool:
    node = core.apply
    return node is not None and (isinstance(node.op, Softmax) or node.op in (Elementwise("sigmoid"), Elementwise("exp")))


RULES: tuple[Rule, ...] = (
    log_one_plus, exp_minus_one, one_minus_exp, log_exp, log_one_plus_exp, log1p_expm1, log_sigmoid, log_one_minus_sigmoid,
    one_minus_sigmoid, quotient_as_sigmoid, quotient_as_falling_sigmoid, reciprocal_as_sigmoid, root_of_square,
    square_of_root, log_through_moves)
