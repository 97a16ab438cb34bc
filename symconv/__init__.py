"""symconv: a Theano-style symbolic expression compiler with convolution at its centre.

    import symconv as sc
    import symconv.tensor as T
"""
from __future__ import annotations

from . import errors, optimizers, tensor
from .config import VERSION, config
from .errors import BackendError, InternalError, SymconvError, UserError
from .graph import TensorType, Variable
from .graph.gradient import Lop, Rop, grad
from .graph.substitute import clone
from .printing import debugprint, draw, pprint, to_dot, to_networkx
from .runtime import evaluation as _evaluation  # noqa: F401  registers Variable.eval
from .runtime.arguments import In, Out
from .runtime.compile import compile, function
from .runtime.function import Function
from .runtime.mode import Mode
from .runtime.saving import load
from .runtime.shared import SharedVariable, shared
from .runtime.verify_grad import verify_grad

__version__ = VERSION

__all__ = ["BackendError", "Function", "In", "InternalError", "Lop", "Mode", "Out", "Rop", "SharedVariable", "SymconvError",
           "TensorType", "UserError", "Variable", "clone", "compile", "config", "debugprint", "draw", "errors", "function",
           "grad", "load", "optimizers", "pprint", "shared", "tensor", "to_dot", "to_networkx", "verify_grad"]
