"""What rules ask about values: constants with one value everywhere, values that cannot be negative, equal shapes."""
from __future__ import annotations

from weakref import WeakKeyDictionary

import numpy as np

from ..graph import Apply, Constant, Variable
from ..ops.elementwise import Elementwise
from ..ops.reductions import Reduce
from ..ops.scalar import evaluate_scalar
from ..ops.shape import BroadcastTo, DimShuffle, Reshape
from ..ops.softmax import LogSoftmax, Softmax

Number = int | float | bool
_LARGEST_SEARCHED = 1 << 16
_NON_NEGATIVE = frozenset({"exp", "exp2", "sigmoid", "softplus", "abs", "square", "relu"})
_uniform: WeakKeyDictionary[Constant, Number | None] = WeakKeyDictionary()


def uniform_value(variable: Variable) -> Number | None:
    """The number that every element has, where the variable is a constant that is the same everywhere (perhaps broadcast,
    reshaped or cast), else None."""
    casts: list[str] = []
    while variable.apply is not None:
        op = variable.apply.op
        if isinstance(op, Elementwise) and op.scalar == "cast":
            casts.append(variable.dtype)
        elif not isinstance(op, (BroadcastTo, DimShuffle, Reshape)):
            return None
        variable = variable.apply.inputs[0]
    value = _uniform_constant(variable) if isinstance(variable, Constant) else None
    if value is None or not casts:
        return value
    array = np.asarray(value, variable.type.dtype)
    for dtype in reversed(casts):
        array = evaluate_scalar("cast", (array,), dtype)
    return array.item()


def _uniform_constant(constant: Constant) -> Number | None:
    if constant not in _uniform:
        data = constant.data
        same = 0 < data.size <= _LARGEST_SEARCHED and (data.size == 1 or bool((data == data.flat[0]).all()))
        _uniform[constant] = data.flat[0].item() if same else None
    return _uniform[constant]


def is_minus_zero(variable: Variable) -> bool:
    """Whether a variable is the constant -0.0 everywhere."""
    value = uniform_value(variable)
    return isinstance(value, float) and value == 0 and bool(np.signbit(value))


def is_non_negative(variable: Variable) -> bool:
    """Whether no element can be below zero or -0.0 (it can be NaN); True only where the last operation tells it."""
    node = variable.apply
    if node is None:
        return isinstance(variable, Constant) and variable.data.size <= _LARGEST_SEARCHED and not bool(
            np.signbit(variable.data.astype(np.float64)).any())
    if isinstance(node.op, Elementwise):
        return node.op.scalar in _NON_NEGATIVE
    if isinstance(node.op, (BroadcastTo, DimShuffle, Reshape)):
        return is_non_negative(node.inputs[0])
    return isinstance(node.op, Softmax)


def is_unstretched(x: Variable, node: Apply) -> bool:
    """Whether an input of an elementwise node surely has the shape of the node's result, so that it can stand for it."""
    result = node.outputs[0].type.shape
    if x.ndim != len(result):
        return False
    return all(_keeps_axis(x, node, axis, size) for axis, size in enumerate(result, start=-len(result)))


def _keeps_axis(x: Variable, node: Apply, axis: int, size: int | None) -> bool:
    own = x.type.shape[axis]
    if own is not None:
        return own == size
    return size is None and all(other is x or other.ndim < -axis or other.type.shape[axis] == 1 or _is_reduced_from(other, x)
                                for other in node.inputs)


def _is_reduced_from(other: Variable, x: Variable) -> bool:
    """Whether `other` has x's shape but for axes of size 1, because it is f(reduce(g(x))) with the reduced axes kept."""
    base = _base(x)
    for _ in range(4):
        other = _base(other)
        if other is base:
            return True
        node = other.apply
        if node is None or not isinstance(node.op, Reduce) or not node.op.keepdims or node.op.prologue is not None:
            return False
        other = node.inputs[0]
    return False


def _base(variable: Variable) -> Variable:
    """What a variable is computed from by functions of one variable that keep its shape; a few steps down."""
    for _ in range(8):
        node = variable.apply
        if node is None or not isinstance(node.op, (Elementwise, Softmax, LogSoftmax)):
            break
        tensors = [each for each in dict.fromkeys(node.inputs) if each.ndim]
        if len(tensors) != 1:
            break
        variable = tensors[0]
    return variable


_roots: WeakKeyDictionary[Variable, Variable] = WeakKeyDictionary()


def shape_root(variable: Variable) -> Variable:
    """A variable further down that surely has the same shape: two variables with one root have one shape."""
    path = []
    while variable not in _roots:
        path.append(variable)
        below = _same_shape_below(variable)
        if below is None:
            _roots[variable] = variable
            break
        variable = below
    root = _roots[variable]
    for each in path:
        _roots[each] = root
    return root


def _same_shape_below(variable: Variable) -> Variable | None:
    node = variable.apply
    if node is None:
        return None
    if isinstance(node.op, (Softmax, LogSoftmax)):
        return node.inputs[0]
    if not isinstance(node.op, Elementwise):
        return None
    return next((each for each in node.inputs if is_unstretched(each, node)), None)
