"""Constant folding: a node whose inputs are all constants is its value, computed once by its reference.

Conditions: the result has at most `MAX_ELEMENTS` elements, or no more than its inputs have; broadcasts stay (they cost no
memory); convolutions, matrix products and random numbers stay with their kernels, and what prints or checks stays.  An error
that the value would give (an index out of range) stays where it is too: it is raised when the function is called.

Floats: the reference rounds as the kernels do, but for the last bits of exp, log and the like.  Stable forms are found first
(`log(softmax(c))` of a constant is folded as log-softmax), so the phases that fold floats come after `stabilize`.
"""
from __future__ import annotations

import math

import numpy as np

from .. import dtypes
from ..errors import UserError
from ..graph import Apply, Constant, Op
from ..ops.convolution import Conv
from ..ops.linalg import MatMul
from ..ops.random import Random
from ..ops.shape import BroadcastTo
from .context import Context
from .rule import Answer, Skip, rule

MAX_ELEMENTS = 1_000_000
_LEFT_TO_KERNELS = (Conv, MatMul, Random, BroadcastTo)


@rule(Op, reads=Constant)
def fold_integer_constants(node: Apply, context: Context) -> Answer:
    """Shapes, indices and masks: exact, so allowed before floats are brought to stable forms."""
    if any(dtypes.is_float(each.dtype) for each in (*node.inputs, *node.outputs)):
        return None
    return _folded(node)


@rule(Op, reads=Constant)
def fold_constants(node: Apply, context: Context) -> Answer:
    """op(c₁, c₂, …) = c"""
    return _folded(node)


def _folded(node: Apply) -> Answer:
    if not all(isinstance(each, Constant) for each in node.inputs) or isinstance(node.op, _LEFT_TO_KERNELS) \
            or node.op.has_effect:
        return None
    if not all(output.type.is_static for output in node.outputs):
        return None
    result_size = sum(math.prod(output.type.static_shape) for output in node.outputs)
    input_size = sum(math.prod(each.type.static_shape) for each in node.inputs)
    if result_size > max(MAX_ELEMENTS, input_size):
        return Skip(f"the constant would have {result_size} elements")
    return _evaluated(node)


def _evaluated(node: Apply) -> Answer:
    arrays = [each.data for each in node.inputs if isinstance(each, Constant)]
    try:
        with np.errstate(all="ignore"):
            results = node.op.reference(*arrays)
    except UserError as error:
        return Skip(f"its value is an error, raised when the function is called: {error}")
    values = [np.asarray(result).astype(dtypes.numpy_dtype(output.dtype), copy=False)
              for result, output in zip(results, node.outputs, strict=True)]
    return tuple(Constant(value) for value in values)


RULES = (fold_constants,)
