"""References run on arrays of any package with NumPy's interface: on a GPU they are CuPy's.

NumPy's functions pass their work on to the package of the arrays they are given (`__array_function__`, `__array_ufunc__`; CuPy's
documentation: https://docs.cupy.dev/en/stable/user_guide/interoperability.html).  Those that make arrays (`zeros`, `arange`) are
given none: they must be the package's own.
"""
from __future__ import annotations

import importlib
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def array_module(*arrays: Any) -> Any:
    """The package that the arrays come from: NumPy where all are its own.

    >>> array_module(np.zeros(3), np.float32(1)).__name__
    'numpy'
    """
    for array in arrays:
        if not isinstance(array, (np.ndarray, np.generic)):
            return importlib.import_module(type(array).__module__.partition(".")[0])
    return np


def as_array(value: Any) -> Any:
    """An array of any package as it is; a NumPy scalar or a Python number as an array of NumPy."""
    return value if hasattr(value, "__array_function__") else np.asarray(value)


def add_at(target: Any, index: Any, values: Any) -> None:
    """`target[index] += values`, repeated positions added up.

    CuPy adds only what CUDA's atomicAdd takes (https://docs.cupy.dev/en/stable/reference/generated/cupyx.scatter_add.html): other
    integers are added as uint64, which wraps to the same.
    """
    package = array_module(target)
    if package is np:
        np.add.at(target, index, np.ascontiguousarray(values))  # NumPy 2.4 misreads values that it must broadcast
    elif target.dtype.kind == "f":
        package.add.at(target, index, package.ascontiguousarray(values))
    else:
        sums = package.zeros(target.shape, np.uint64)
        package.add.at(sums, index, package.ascontiguousarray(values).astype(np.uint64))
        target += sums.astype(target.dtype)


def erf(x: Any) -> Any:
    """The error function, which NumPy has not; CuPy's is https://docs.cupy.dev/en/stable/reference/scipy_special.html."""
    package = array_module(x)
    if package is np:
        return _numpy_erf(x)
    return importlib.import_module(f"{package.__name__}x.scipy.special").erf(x)


def _numpy_erf(x: Any) -> Any:
    from math import erf as scalar_erf

    return np.vectorize(scalar_erf, otypes=[np.float64])(x)
