"""From what a user writes to a variable: numbers, NumPy arrays and lists become constants.

A Python number that stands alone becomes int64, bool or `config.floatX`; beside a variable it takes the dtype that
`ops/promotion.py` says.
"""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from .. import dtypes
from ..config import config
from ..errors import GraphTypeError, explain_error
from ..graph import Constant, Variable

Array = np.ndarray[Any, Any]


def as_variable(value: Any, dtype: Any = None) -> Variable:
    """`value` as a variable.

    A variable is returned as it is (cast where `dtype` asks for another).  A Python number, NumPy scalar, array or list
    becomes a constant: Python int → int64, bool → bool, float → `config.floatX`, arrays keep their dtype.  A list or tuple
    that holds variables is stacked along a new first axis.  Raises GraphTypeError for anything else.

    >>> as_variable(3).dtype, as_variable(0.5).dtype, as_variable(np.zeros((2, 3))).type.shape
    ('int64', 'float32', (2, 3))
    """
    if isinstance(value, Variable):
        if dtype is None or dtypes.canonical(dtype) == value.dtype:
            return value
        from .elementwise import cast

        return cast(value, dtype)
    if isinstance(value, (list, tuple)) and any(isinstance(leaf, Variable) for leaf in _leaves(value)):
        return _stacked(value, dtype)
    return constant(value, dtype)


def constant(value: Any, dtype: Any = None, name: str | None = None) -> Constant:
    """A constant with the value of a number, array or list, in `dtype` (default: as `as_variable` says).

    >>> constant([1.0, 2.0], "float64").data
    array([1., 2.])
    """
    if isinstance(value, Variable):
        raise GraphTypeError(explain_error("a constant needs a value, not a variable", repr(value)))
    array = _as_array(value)
    wanted = _own_dtype(value, array) if dtype is None else dtypes.canonical(dtype)
    return Constant(_converted(array, wanted, value), name)


def _as_array(value: Any) -> Array:
    if not isinstance(value, (bool, int, float, np.generic, np.ndarray, list, tuple)):
        raise GraphTypeError(explain_error("this is no value of an expression", f"{type(value).__name__} {value!r:.80}",
                                           "give a variable, a number, a NumPy array or a list of numbers"))
    try:
        array = np.asarray(value)
    except (ValueError, TypeError, OverflowError) as error:
        raise GraphTypeError(explain_error("this list makes no array", f"{error}",
                                           "give rows of equal length")) from None
    if array.dtype == object and isinstance(value, int):
        raise GraphTypeError(explain_error("the integer fits no dtype", str(value), "use a float"))
    dtypes.canonical(array.dtype)
    return array


def _own_dtype(value: Any, array: Array) -> str:
    """The dtype of a value that stands alone: Python's floats are `config.floatX`, Python's ints int64."""
    name = dtypes.canonical(array.dtype)
    if isinstance(value, (np.generic, np.ndarray)) or any(isinstance(leaf, (np.generic, np.ndarray))
                                                         for leaf in _leaves(value)):
        return name
    if name == "float64":
        return str(config.floatX)
    return "int64" if dtypes.kind(name) == "i" else name  # NumPy 1 has int32 for Python ints on some systems


def _converted(array: Array, dtype: str, value: Any) -> Array:
    target = dtypes.numpy_dtype(dtype)
    if dtypes.is_integer(dtype) and array.dtype.kind in "iu" and array.size:
        limits = np.iinfo(target)
        low, high = int(array.min()), int(array.max())
        if low < limits.min or high > limits.max:
            raise GraphTypeError(explain_error(f"the value does not fit in {dtype}", f"{value!r:.80}",
                                               f"{dtype} holds {limits.min} … {limits.max}: cast to a wider dtype first"))
    with np.errstate(over="ignore", invalid="ignore"):
        return array.astype(target)


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, (list, tuple)):
        for each in value:
            yield from _leaves(each)
    else:
        yield value


def _stacked(values: Any, dtype: Any) -> Variable:
    from .joining import stack
    from .promotion import common_dtype

    parts = [as_variable(value) if isinstance(value, (list, tuple)) else value for value in values]
    common = common_dtype(parts) if dtype is None else dtypes.canonical(dtype)
    return stack([as_variable(part, common) for part in parts], axis=0)
