"""In which dtype the arguments of an operation meet. The rules are those of `symconv/dtypes.py`; Python numbers are weak."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import dtypes
from ..config import config
from .constants import as_variable


def is_weak(value: Any) -> bool:
    """Whether `value` is a Python number (NumPy's scalars have a dtype of their own and are not)."""
    return type(value) in (bool, int, float)


def common_dtype(values: Sequence[Any]) -> str:
    """The dtype in which variables, arrays and Python numbers meet.

    >>> common_dtype([as_variable([1, 2], "int8"), 3]), common_dtype([as_variable([1, 2], "int8"), 0.5])
    ('int8', 'float32')
    """
    strong = [as_variable(value).dtype for value in values if not is_weak(value)]
    weak = [value for value in values if is_weak(value)]
    if not strong:
        return dtypes.promote(as_variable(value).dtype for value in weak)
    dtype = dtypes.promote(strong)
    for value in weak:
        dtype = _with_number(dtype, value)
    return dtype


def _with_number(dtype: str, value: bool | int | float) -> str:
    if type(value) is float and not dtypes.is_float(dtype):
        return str(config.floatX)
    if type(value) is int and dtype == "bool":
        return "int64"
    return dtype


def float_dtype(dtype: str) -> str:
    """The dtype of a quotient or of exp for arguments of this dtype: floats keep theirs, int8 and int16 (and bool) give
    float32, wider integers float64.

    >>> float_dtype("int16"), float_dtype("int32"), float_dtype("float16")
    ('float32', 'float64', 'float16')
    """
    if dtypes.is_float(dtype):
        return dtype
    return "float32" if dtypes.itemsize(dtype) <= 2 else "float64"
