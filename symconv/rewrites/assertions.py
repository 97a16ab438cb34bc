"""Assertions: conditions that are known to hold are not looked at.

    assert(x, true, c) = assert(x, c)        assert(x, true) = x

Conditions: the known ones are constants without a 0.  One that is known to fail stays: it is an error when the function runs.
Floats: nothing is computed.
"""
from __future__ import annotations

from ..graph import Apply, Constant, Variable, apply_op
from ..ops.effects import Assert
from .context import Context
from .rule import Answer, rule


@rule(Assert, reads=Constant)
def drop_known_conditions(node: Apply, context: Context) -> Answer:
    """assert(x, true, c) = assert(x, c)"""
    x, *conditions = node.inputs
    left = [each for each in conditions if not _holds(each)]
    if len(left) == len(conditions):
        return None
    return apply_op(node.op, x, *left) if left else x


def _holds(condition: Variable) -> bool:
    return isinstance(condition, Constant) and bool(condition.data.all())


RULES = (drop_known_conditions,)
