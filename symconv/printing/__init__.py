"""Looking inside: expressions, compiled functions and programs as text, mathematics, drawings and graphs."""
from typing import Any

from ..graph.operators import register_meanings
from ..ops.effects import Print
from .mathematics import pprint
from .tree import debugprint


def _variable_as_latex(variable: Any) -> str | None:
    from .latex import variable_as_latex

    return variable_as_latex(variable)


register_meanings({"latex": _variable_as_latex})

pp = pprint  # Theano's name

__all__ = ["Print", "debugprint", "pp", "pprint"]
