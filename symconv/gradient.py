"""Theano's path of gradients, `theano.gradient`: the names are those of `symconv` and `symconv.tensor`.

`consider_constant(x)` is `x` with a gradient of zeros, as `zero_grad`; `disconnected_grad(x)` is `x` through which no gradient
flows at all.
"""
from __future__ import annotations

from typing import Any

from .errors import DisconnectedInputError, GradientError, explain_error
from .graph.gradient import Lop, Rop, grad
from .ops.gradient_control import grad_clip, grad_scale, zero_grad
from .ops.jacobian import hessian, hessian_vector_product, jacobian
from .ops.stop_gradient import disconnected_grad
from .runtime.verify_grad import verify_grad

consider_constant = zero_grad

__all__ = ["DisconnectedInputError", "GradientError", "Lop", "Rop", "consider_constant", "disconnected_grad", "grad", "grad_clip",
           "grad_scale", "hessian", "hessian_vector_product", "jacobian", "verify_grad", "zero_grad"]

_ABSENT = {"DisconnectedType": "Op.grad gives None for an input that the result does not depend on",
           "NullType": "Op.grad raises symconv.errors.GradientError where there is no gradient",
           "grad_undefined": "raise symconv.errors.GradientError in Op.grad",
           "grad_not_implemented": "raise symconv.errors.GradientError in Op.grad",
           "undefined_grad": "disconnected_grad(x): a gradient asked for through it is an error",
           "subgraph_grad": "grad(None, wrt, known_grads={variable: its gradient})",
           "format_as": "give wrt as a list or a tuple, and the result is one",
           "numeric_grad": "verify_grad"}


def __getattr__(name: str) -> Any:
    raise AttributeError(explain_error(f"module {__name__!r} has no attribute {name!r}", do=_ABSENT.get(name, "")))
