"""symconv: a Theano-style symbolic expression compiler with convolution at its centre.

    import symconv as sc
    import symconv.tensor as T
"""
from __future__ import annotations

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from . import errors, gradient, optimizers, tensor
from .config import VERSION, config
from .errors import BackendError, InternalError, SymconvError, UserError
from .graph import TensorType, Variable, name_scope
from .graph.gradient import Lop, Rop, grad
from .graph.substitute import clone
from .ops.effects import Assert, Print
from .ops.jacobian import hessian, hessian_vector_product, jacobian
from .printing import debugprint, pp, pprint
from .runtime import evaluation as _evaluation  # noqa: F401  registers Variable.eval
from .runtime.arguments import In, Out
from .runtime.compile import compile, function
from .runtime.function import Function
from .runtime.mode import Mode
from .runtime.shared import SharedVariable, shared
from .runtime.verify_grad import verify_grad

if _TYPE_CHECKING:
    from .printing.dot import to_dot
    from .printing.draw import draw
    from .printing.html_export import to_html
    from .printing.json_graph import to_json
    from .printing.networkx_graph import to_networkx
    from .runtime.memory_check import check_memory
    from .runtime.rewrite_graph import rewrite_graph
    from .runtime.saving import load

__version__ = VERSION

__all__ = ["Assert", "BackendError", "Function", "In", "InternalError", "Lop", "Mode", "Out", "Print", "Rop", "SharedVariable",
           "SymconvError", "TensorType", "UserError", "Variable", "check_memory", "clone", "compile", "config", "debugprint",
           "draw", "errors", "function", "grad", "gradient", "hessian", "hessian_vector_product", "jacobian", "load", "name_scope",
           "optimizers", "pp", "pprint", "rewrite_graph", "shared", "tensor", "to_dot", "to_html", "to_json", "to_networkx",
           "verify_grad"]

# What many programs never use is imported when it is first asked for: importing symconv should be quick.
_LATER = {"check_memory": "runtime.memory_check", "draw": "printing.draw", "load": "runtime.saving",
          "rewrite_graph": "runtime.rewrite_graph", "to_dot": "printing.dot", "to_html": "printing.html_export",
          "to_json": "printing.json_graph", "to_networkx": "printing.networkx_graph"}


# Names of Theano's that are not here, and what to write instead.
_ABSENT = {"scan": "write the loop in Python: the expression then holds every step",
           "ifelse": "T.switch(condition, a, b) computes both branches and chooses element by element",
           **dict.fromkeys(("map", "reduce", "foldl", "foldr"), "write the loop in Python"),
           "OrderedUpdates": "a dict or a list of pairs", "Param": "symconv.In", "dot": "symconv.tensor.dot",
           "sandbox": "symconv.tensor.shared_randomstreams has MRG_RandomStreams", "gof": "symconv.graph",
           "Op": "symconv.graph.Op", "Apply": "symconv.graph.Apply", "d3viz": "symconv.to_html",
           "sparse": "there are no sparse tensors", "scalar": "symconv.tensor.scalar", "version": "symconv.__version__",
           "as_op": "a class of your own: symconv/README.md, How to add an op",
           "OpFromGraph": "a Python function that builds the expression",
           "subgraph_grad": "symconv.grad(None, wrt, known_grads={variable: its gradient})",
           "gpuarray": 'compile(…, device="cuda")', "function_dump": "Function.save", "dump_function": "Function.save"}


def __getattr__(name: str) -> _Any:
    if name not in _LATER:
        raise AttributeError(errors.explain_error(f"module {__name__!r} has no attribute {name!r}", do=_ABSENT.get(name, "")))
    return getattr(_import_module(f".{_LATER[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
