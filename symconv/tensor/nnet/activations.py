"""Activation functions. NaN stays NaN in all of them; integers become floats, except in `relu` without a slope."""
from __future__ import annotations

import math
from typing import Any

from ...graph import Variable
from ...ops import elementwise as ops
from ...ops.constants import as_variable
from ...ops.promotion import float_dtype
from ...ops.softmax import log_softmax, softmax

__all__ = ["elu", "gelu", "hard_sigmoid", "leaky_relu", "log_softmax", "logsoftmax", "relu", "selu", "sigmoid", "silu",
           "softmax", "softplus", "softsign", "swish", "tanh"]

sigmoid = ops.sigmoid
softplus = ops.softplus
tanh = ops.tanh
logsoftmax = log_softmax

_SELU_SCALE = 1.0507009873554804934193349852946
_SELU_ALPHA = 1.6732632423543772848170429916717


def relu(x: Any, alpha: Any = 0) -> Variable:
    """x where x > 0, else alpha·x.

    Args:
        x: any tensor.
        alpha: slope of the negative side: a number, or a tensor that broadcasts against `x` (learned slopes).

    The gradient at 0 is `alpha` (0 by default). Theano computed 0.5·(x + |x|), whose gradient at 0 is 0.5.
    """
    if type(alpha) in (int, float) and alpha == 0:
        return ops.relu(x)
    variable = _floats(x)
    return ops.where(variable > 0, variable, variable * _like(alpha, variable))


def leaky_relu(x: Any, alpha: Any = 0.01) -> Variable:
    """`relu` with the slope 0.01 on the negative side."""
    return relu(x, alpha)


def elu(x: Any, alpha: Any = 1.0) -> Variable:
    """x where x > 0, else alpha·(exp(x) - 1). The gradient at 0 is `alpha`. Clevert et al. 2015, arXiv:1511.07289."""
    variable = _floats(x)
    positive = variable > 0
    # exp of a large positive x would be inf, and 0·inf in the gradient of the branch that is not taken NaN
    negative = ops.where(positive, 0, variable)
    return ops.where(positive, variable, ops.expm1(negative) * _like(alpha, variable))


def selu(x: Any) -> Variable:
    """1.0507·elu(x, 1.6733): keeps mean 0 and variance 1. Klambauer et al. 2017, arXiv:1706.02515."""
    return elu(x, _SELU_ALPHA) * _SELU_SCALE


def gelu(x: Any, approximate: bool = False) -> Variable:
    """x·Φ(x), Φ the normal distribution's cumulative function. Hendrycks and Gimpel 2016, arXiv:1606.08415.

    `approximate=True` takes 0.5·x·(1 + tanh(√(2/π)·(x + 0.044715·x³))), within 0.0005 of it.
    """
    variable = _floats(x)
    if approximate:
        inner = (variable + ops.square(variable) * variable * 0.044715) * math.sqrt(2 / math.pi)
        return variable * 0.5 * (ops.tanh(inner) + 1)
    return variable * 0.5 * (ops.erf(variable * math.sqrt(0.5)) + 1)


def silu(x: Any) -> Variable:
    """x·sigmoid(x). Elfwing et al. 2017, arXiv:1702.03118."""
    variable = _floats(x)
    return variable * ops.sigmoid(variable)


def swish(x: Any, beta: Any = 1.0) -> Variable:
    """x·sigmoid(beta·x); `silu` where beta is 1. Ramachandran et al. 2017, arXiv:1710.05941."""
    variable = _floats(x)
    return variable * ops.sigmoid(variable * _like(beta, variable))


def hard_sigmoid(x: Any) -> Variable:
    """0.2·x + 0.5 limited to 0 … 1, as in Theano."""
    return ops.clip(_floats(x) * 0.2 + 0.5, 0.0, 1.0)


def softsign(x: Any) -> Variable:
    """x / (1 + |x|)."""
    variable = _floats(x)
    return variable / (abs(variable) + 1)


def _floats(x: Any) -> Variable:
    variable = as_variable(x)
    return ops.cast(variable, float_dtype(variable.dtype))


def _like(number: Any, x: Variable) -> Any:
    """A Python number as it is, so that it takes x's dtype; anything else as a variable."""
    return number if type(number) in (int, float) else as_variable(number)
