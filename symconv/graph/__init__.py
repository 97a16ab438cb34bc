"""What an expression is: types, variables, nodes, captured graphs, traversal, substitution, verification and gradients."""
from .captured import FunctionGraph, Interner, capture
from .node import Apply, Op, apply_op
from .provenance import SourceLine, current_source
from .scope import name_scope
from .traversal import ancestors, leaves, toposort
from .types import TensorType
from .variable import Constant, Variable

__all__ = ["Apply", "Constant", "FunctionGraph", "Interner", "Op", "SourceLine", "TensorType", "Variable", "ancestors",
           "apply_op", "capture", "current_source", "leaves", "name_scope", "toposort"]
