"""Losses, one number for each example; take `.mean()` of them. The forms from logits are exact for logits of any size."""
from __future__ import annotations

from typing import Any

from ... import dtypes
from ...errors import GraphTypeError, ShapeError, explain_error
from ...graph import Variable, apply_op
from ...ops.axes import normalize_axis
from ...ops.axis_moves import moveaxis
from ...ops.constants import as_variable
from ...ops.creation import arange
from ...ops.elementwise import Elementwise, log, log1p, neq, softplus, where
from ...ops.integer_indexing import Gather
from ...ops.promotion import float_dtype
from ...ops.shape import shape_sizes
from ...ops.sizes import joined_size
from ...ops.softmax import Softmax, log_softmax

__all__ = ["binary_crossentropy", "categorical_crossentropy", "sigmoid_binary_crossentropy", "softmax_cross_entropy"]


def categorical_crossentropy(coding_dist: Any, true_dist: Any) -> Variable:
    """-Σ true·log(coding) over the last axis, from probabilities.

    Args:
        coding_dist: probabilities [..., classes], for example a softmax.
        true_dist: probabilities of the same rank, or integer classes [...], one for each row.

    Raises:
        GraphTypeError: ranks that differ by more than one, classes that are no integers.
        IndexRangeError: when run, a class outside 0 … classes - 1.

    The result of `softmax` itself is taken as its logits, and the loss is exact for logits of any size, as
    `softmax_cross_entropy` is.  Of other probabilities 0 gives inf (NaN where the true probability is 0 too).
    """
    coding, true = as_variable(coding_dist), as_variable(true_dist)
    classes = _are_classes(coding, true)
    node = coding.apply
    if node is not None and isinstance(node.op, Softmax):
        logarithms = log_softmax(node.inputs[0], node.op.axis)
        return -_picked(logarithms, true) if classes else _expected(true, logarithms, -1)
    return -log(_picked(coding, true)) if classes else -(true * log(coding)).sum(axis=-1)


def softmax_cross_entropy(logits: Any, labels: Any, axis: int = -1) -> Variable:
    """-Σ labels·log_softmax(logits) along `axis`: the cross-entropy of a softmax, without taking the softmax.

    Args:
        logits: floats of any size, [..., classes, ...].
        labels: probabilities of the same rank as `logits`, or integer classes with the shape of `logits` without `axis`.
        axis: the axis of the classes.

    Returns:
        The shape of `logits` without `axis`. Where a label probability is 0 the logit may be -inf.

    Raises:
        GraphTypeError: ranks that differ by more than one, classes that are no integers.
        IndexRangeError: when run, a class outside 0 … classes - 1.

    >>> softmax_cross_entropy(as_variable([[0.0, 1000.0], [300.0, -500.0]]), as_variable([0, 0])).static_shape
    (2,)
    """
    scores, true = as_variable(logits), as_variable(labels)
    position = normalize_axis(axis, scores.ndim)
    logarithms = log_softmax(scores, position)
    if _are_classes(scores, true):
        return -_picked(moveaxis(logarithms, position, -1), true)
    return _expected(true, logarithms, position)


def binary_crossentropy(output: Any, target: Any) -> Variable:
    """-(target·log(output) + (1 - target)·log(1 - output)), elementwise, from probabilities.

    The result of `sigmoid` itself is taken as its logits: that is `sigmoid_binary_crossentropy`.
    """
    node = as_variable(output).apply
    if node is not None and node.op == Elementwise("sigmoid"):
        return sigmoid_binary_crossentropy(node.inputs[0], target)
    probability, true = _float_pair(output, target)
    return -(true * log(probability) + (1 - true) * log1p(-probability))


def sigmoid_binary_crossentropy(logits: Any, target: Any) -> Variable:
    """`binary_crossentropy(sigmoid(logits), target)`, exact for logits of any size.

    It is target·softplus(-x) + (1 - target)·softplus(x): the terms never cancel, the gradient is sigmoid(x) - target.
    """
    x, true = _float_pair(logits, target)
    return true * softplus(-x) + (1 - true) * softplus(x)


def _float_pair(first: Any, second: Any) -> tuple[Variable, Variable]:
    """Both as floats in one dtype."""
    one, two = as_variable(first), as_variable(second)
    dtype = float_dtype(dtypes.promote([one.dtype, two.dtype]))
    return one.astype(dtype), two.astype(dtype)


def _are_classes(scores: Variable, true: Variable) -> bool:
    """Whether `true` holds one integer class for each row of scores (else the same rank: probabilities)."""
    if true.ndim == scores.ndim:
        return False
    if true.ndim != scores.ndim - 1:
        raise GraphTypeError(explain_error("the ranks of scores and labels do not fit", f"{scores.type} and {true.type}",
                                           "give probabilities of the same rank, or integer classes of one rank less"))
    if not dtypes.is_integer(true.dtype):
        raise GraphTypeError(explain_error("classes are integers", str(true.type),
                                           'cast them: labels.astype("int64"), or give probabilities of the same rank'))
    return True


def _expected(true: Variable, logarithms: Variable, axis: int) -> Variable:
    """-Σ true·logarithms, where a class of probability 0 adds nothing, also if its logarithm is -inf."""
    return -where(neq(true, 0), true * logarithms, 0).sum(axis=axis)


def _picked(scores: Variable, classes: Variable) -> Variable:
    """scores[..., classes]: one element of every row."""
    rows = scores.type.with_shape(scores.static_shape[:-1])
    if not rows.accepts(classes.type.with_dtype(scores.dtype)):
        raise ShapeError(explain_error("there must be one class for each row of scores",
                                       f"{scores.type} and {classes.type}"))
    *lead, n_classes = shape_sizes(scores)
    count = joined_size(lead)
    flat = _refuse_negative(classes.astype("int64").reshape(count), n_classes)
    return apply_op(Gather(2), scores.reshape(count, n_classes), arange(count), flat).reshape(*lead)


def _refuse_negative(classes: Variable, n_classes: Any) -> Variable:
    """The classes, where a negative one, which an index would count from the end, is out of range on that side too."""
    return where(classes < 0, classes - n_classes, classes)
