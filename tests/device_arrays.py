"""A stand-in for CuPy where there is no GPU: arrays that never become NumPy's of their own accord.

Its functions and its arrays' methods are those whose names CuPy has (`cupy_names.txt`), computed by NumPy on the host.  As in CuPy,
NumPy's functions are passed on to them; NumPy arrays beside its own are refused, and so is what would copy to the host in silence.
Where CuPy's documentation says nothing it refuses: index arrays and values of NumPy, generalised ufuncs, methods of ufuncs.
"""
from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from symconv.ops.array_module import erf

_NAMES = dict(line.split(": ", 1) for line in (Path(__file__).parent / "cupy_names.txt").read_text().splitlines()[1:])
PACKAGE, METHODS = frozenset(_NAMES["package"].split()), frozenset(_NAMES["array"].split())
_FROM_HOST = ("array", "asarray", "ascontiguousarray", "asanyarray")  # they copy NumPy arrays to the device


def _own(value: Any, may_be_host: bool = False) -> Any:
    """NumPy's form of an argument; a TypeError for a NumPy array, as CuPy's `Unsupported type <class 'numpy.ndarray'>`."""
    if isinstance(value, Array):
        return value.host
    if isinstance(value, np.ndarray) and not may_be_host:
        raise TypeError(f"Unsupported type {type(value)}")
    if isinstance(value, (tuple, list)):
        return type(value)(_own(each, may_be_host) for each in value)
    return value


def _wrapped(value: Any) -> Any:
    if isinstance(value, (np.ndarray, np.generic)):
        return Array(np.asarray(value))
    if isinstance(value, (tuple, list)):
        return type(value)(_wrapped(each) for each in value)
    return value


class _Function:
    """One of the package's functions; `at` is a ufunc's method of that name, which CuPy has."""

    def __init__(self, name: str) -> None:
        self.name, self.numpy = name, getattr(np, name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.name == "where" and not hasattr(args[0], "astype"):
            raise AttributeError(f"{type(args[0])} has no astype, which CuPy's where asks of a condition")
        own = [_own(each, self.name in _FROM_HOST) for each in args]
        options = {name: _own(value) for name, value in kwargs.items()}
        return _wrapped(self.numpy(*own, **options))

    def at(self, target: Array, index: Any, values: Any) -> None:
        if target.dtype.name not in ("int32", "float16", "float32", "float64", "uint32", "uint64"):
            raise TypeError(f"CUDA has no atomicAdd of {target.dtype}")
        self.numpy.at(_own(target), _own(index), _own(values))


def __getattr__(name: str) -> Any:
    if name not in PACKAGE or not hasattr(np, name):
        raise AttributeError(f"CuPy has no {name}")
    found = getattr(np, name)
    return _Function(name) if callable(found) and not isinstance(found, type) else found


class Array(np.lib.mixins.NDArrayOperatorsMixin):
    """An array "on the device"."""

    def __init__(self, host: Any) -> None:
        self.host = np.asarray(host)

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise TypeError("Implicit conversion to a NumPy array is not allowed.")

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if method != "__call__" or ufunc.signature is not None or ufunc.__name__ not in PACKAGE:
            return NotImplemented
        targets = kwargs.pop("out", None)
        result = ufunc(*(_own(each) for each in inputs), **kwargs)
        if targets is None:
            return _wrapped(result)
        (target,) = targets
        _own(target)[...] = result.astype(target.dtype)
        return target

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if function.__module__ != "numpy" or function.__name__ not in PACKAGE:
            return NotImplemented
        return _Function(function.__name__)(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in METHODS or name == "host":
            raise AttributeError(f"a CuPy array has no {name}")
        found = getattr(self.host, name)
        if callable(found):
            return lambda *args, **kwargs: _wrapped(found(*map(_own, args), **kwargs))
        return _wrapped(found) if isinstance(found, np.ndarray) else found

    def get(self) -> Any:
        """A copy on the host."""
        return self.host.copy()

    def item(self, *args: Any) -> Any:
        """An element as a Python number."""
        return self.host.item(*args)

    def tolist(self) -> Any:
        """The elements as Python numbers."""
        return self.host.tolist()

    def __getitem__(self, index: Any) -> Any:
        return _wrapped(self.host[_own(index)])

    def __setitem__(self, index: Any, value: Any) -> None:
        self.host[_own(index)] = _own(value)

    def __iter__(self) -> Any:
        return (self[number] for number in range(len(self)))

    def __len__(self) -> int:
        return len(self.host)

    def __bool__(self) -> bool:
        return bool(self.host)

    def __int__(self) -> int:
        return int(self.host)

    def __float__(self) -> float:
        return float(self.host)

    def __matmul__(self, other: Any) -> Any:
        return Array(self.host @ _own(other))

    def __rmatmul__(self, other: Any) -> Any:
        return Array(_own(other) @ self.host)


sys.modules[f"{__name__}x.scipy.special"] = SimpleNamespace(erf=lambda x: Array(erf(x.host)))  # type: ignore[assignment]
