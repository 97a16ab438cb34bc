"""One table of dtypes: their NumPy, C and CUDA names, how they promote, and what sums of them accumulate in.

Promotion (the same on every path):
- two floats meet in the wider, two integers as NumPy says;
- a float and an integer or bool meet in the float's type (float32 stays float32, as in PyTorch and JAX; NumPy and Theano
  would widen float32 with int32 to float64);
- a Python number takes the other side's dtype if its kind fits: float32 with a Python float stays float32, int8 with a
  Python int stays int8; an integer with a Python float becomes `config.floatX`.
float16 and bfloat16 store; float32 computes and accumulates.
"""
from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .errors import GraphTypeError, explain_error


@dataclass(frozen=True, slots=True)
class DType:
    """One dtype: name, kind ('b', 'i', 'u' or 'f'), size in bytes, C type, and the dtype that sums of it accumulate in."""

    name: str
    kind: str
    itemsize: int
    c_name: str
    accumulator: str


_ROWS = (
    DType("bool", "b", 1, "uint8_t", "int64"),
    DType("int8", "i", 1, "int8_t", "int64"),
    DType("int16", "i", 2, "int16_t", "int64"),
    DType("int32", "i", 4, "int32_t", "int64"),
    DType("int64", "i", 8, "int64_t", "int64"),
    DType("uint8", "u", 1, "uint8_t", "uint64"),
    DType("uint16", "u", 2, "uint16_t", "uint64"),
    DType("uint32", "u", 4, "uint32_t", "uint64"),
    DType("uint64", "u", 8, "uint64_t", "uint64"),
    DType("float16", "f", 2, "_Float16", "float32"),
    DType("bfloat16", "f", 2, "__bf16", "float32"),
    DType("float32", "f", 4, "float", "float32"),
    DType("float64", "f", 8, "double", "float64"),
)
DTYPES: dict[str, DType] = {row.name: row for row in _ROWS}
_KNOWN_OBJECTS = {np.dtype(row.name): row.name for row in _ROWS if row.name != "bfloat16"}  # asking a dtype its name is slow
INTEGERS = tuple(row.name for row in _ROWS if row.kind in "iu")


def canonical(dtype: Any) -> str:
    """The table's name of anything NumPy takes for a dtype.

    >>> canonical(np.float32), canonical(float), canonical("int8")
    ('float32', 'float64', 'int8')
    """
    name = dtype if isinstance(dtype, str) else _KNOWN_OBJECTS.get(dtype, "") if isinstance(dtype, np.dtype) else ""
    if name not in DTYPES:
        try:
            name = np.dtype(dtype).name
        except TypeError:
            name = str(dtype)
    if name not in DTYPES:
        raise GraphTypeError(explain_error(f"symconv has no dtype {name!r}", do=f"use one of {', '.join(DTYPES)}"))
    return name


def numpy_dtype(name: str) -> np.dtype[Any]:
    """NumPy's dtype object of a dtype of the table (bfloat16 comes from the package ml_dtypes)."""
    if name == "bfloat16":
        try:
            import ml_dtypes
        except ImportError:
            raise GraphTypeError(explain_error("bfloat16 arrays need the package ml_dtypes",
                                               do="python -m pip install ml_dtypes")) from None
        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype(name)


def kind(dtype: str) -> str:
    """'b', 'i', 'u' or 'f'."""
    return DTYPES[dtype].kind


def is_float(dtype: str) -> bool:
    """Whether the dtype is a floating-point one."""
    return DTYPES[dtype].kind == "f"


def is_integer(dtype: str) -> bool:
    """Whether the dtype is a signed or unsigned integer (bool is not)."""
    return DTYPES[dtype].kind in "iu"


def itemsize(dtype: str) -> int:
    """Bytes of one element."""
    return DTYPES[dtype].itemsize


def accumulator(dtype: str) -> str:
    """The dtype in which a sum of this dtype is accumulated."""
    return DTYPES[dtype].accumulator


def _promote_two(a: str, b: str) -> str:
    if a == b:
        return a
    if is_float(a) and is_float(b):
        if {a, b} == {"float16", "bfloat16"}:
            return "float32"
        return a if itemsize(a) > itemsize(b) else b
    if is_float(a) or is_float(b):
        return a if is_float(a) else b
    return np.promote_types(a, b).name


def promote(dtypes: Iterable[str]) -> str:
    """The dtype in which values of these dtypes meet (see the module's text).

    >>> promote(["float32", "int64"]), promote(["int8", "uint8"]), promote(["float32", "float64"])
    ('float32', 'int16', 'float64')
    """
    names = list(dtypes)
    result = names[0]
    for name in names[1:]:
        result = _promote_two(result, name)
    return result
