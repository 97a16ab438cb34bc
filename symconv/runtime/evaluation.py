"""`variable.eval(...)`: compile an expression once and call it."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import GraphTypeError, explain_error
from ..graph import Variable
from ..graph.operators import register_meanings
from .compile import compile


def evaluate_variable(variable: Variable, inputs: Mapping[Variable, Any]) -> Any:
    """The value of a variable for values of the leaves it needs; compiled once for each set of inputs.

    Raises:
        MissingInputError: a leaf without a value.
    """
    if not isinstance(inputs, Mapping):
        raise GraphTypeError(explain_error("eval takes a dict from variables to values", type(inputs).__name__))
    cache = variable.tag.__dict__.setdefault("eval_functions", {})
    key = tuple(inputs)
    if key not in cache:
        cache[key] = compile(list(key), variable, on_unused_input="ignore", name="eval")
    return cache[key](*inputs.values())


register_meanings({"eval": evaluate_variable})
