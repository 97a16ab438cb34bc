"""Symbolic tensor variables: what an expression starts from."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..config import config
from ..errors import ArgumentError, GraphTypeError, explain_error
from ..graph import Variable
from ..graph.types import make_type

__all__ = [
    "bmatrices", "bmatrix", "bscalar", "bscalars", "btensor3", "btensor3s", "btensor4", "btensor4s", "btensor5",
    "btensor6", "btensor7", "bvector", "bvectors", "col", "dmatrices", "dmatrix", "dscalar", "dscalars", "dtensor3",
    "dtensor3s", "dtensor4", "dtensor4s", "dtensor5", "dtensor6", "dtensor7", "dvector", "dvectors", "fmatrices",
    "fmatrix", "fscalar", "fscalars", "ftensor3", "ftensor3s", "ftensor4", "ftensor4s", "ftensor5", "ftensor6",
    "ftensor7", "fvector", "fvectors", "imatrices", "imatrix", "iscalar", "iscalars", "itensor3", "itensor3s",
    "itensor4", "itensor4s", "itensor5", "itensor6", "itensor7", "ivector", "ivectors", "lmatrices", "lmatrix",
    "lscalar", "lscalars", "ltensor3", "ltensor3s", "ltensor4", "ltensor4s", "ltensor5", "ltensor6", "ltensor7",
    "lvector", "lvectors", "matrices", "matrix", "row", "scalar", "scalars", "tensor", "tensor3", "tensor3s",
    "tensor4", "tensor4s", "tensor5", "tensor6", "tensor7", "vector", "vectors", "wmatrices", "wmatrix", "wscalar",
    "wscalars", "wtensor3", "wtensor3s", "wtensor4", "wtensor4s", "wtensor5", "wtensor6", "wtensor7", "wvector",
    "wvectors",
]

_PLURALS = {"scalars": 0, "vectors": 1, "matrices": 2, "tensor3s": 3, "tensor4s": 4}
_RANKS = {"scalar": 0, "vector": 1, "matrix": 2, "tensor3": 3, "tensor4": 4, "tensor5": 5, "tensor6": 6, "tensor7": 7}
_PREFIXES = {"b": "int8", "w": "int16", "i": "int32", "l": "int64", "f": "float32", "d": "float64"}


def tensor(name: str | None = None, dtype: Any = None, shape: Sequence[int | None] = (), ndim: int | None = None) -> Variable:
    """A tensor variable of any rank.

    Args:
        name: for printing and for keyword arguments.
        dtype: anything NumPy takes for one; `config.floatX` by default.
        shape: a size or None (known only at run time) for each axis.
        ndim: instead of `shape`, the rank with all sizes unknown.

    Raises:
        GraphTypeError: a name that is no text, or something else that is no dtype or no shape.
        ArgumentError: `shape` and `ndim`.

    >>> print(tensor("x", "float32", (None, 3)).type)
    float32[?,3]
    """
    if name is not None and not isinstance(name, str):
        raise GraphTypeError(explain_error("the first argument of a variable is its name, a text", repr(name)))
    if isinstance(dtype, (tuple, list)):
        raise GraphTypeError(explain_error("the second argument of a variable is its dtype", repr(dtype),
                                           "give sizes by name: shape=(None, 3)"))
    if ndim is not None:
        if shape:
            raise ArgumentError(explain_error("give shape or ndim, not both", f"shape={tuple(shape)}, ndim={ndim}"))
        shape = (None,) * ndim
    return Variable(make_type(dtype or config.floatX, shape), name)


def _constructor(kind: str, rank: int, fixed: str | None = None) -> Callable[..., Variable]:
    def make(name: str | None = None, dtype: Any = None, shape: Sequence[int | None] | None = None) -> Variable:
        if shape is not None and len(shape) != rank:
            raise ArgumentError(explain_error(f"{kind} has {rank} axes", f"shape={tuple(shape)}"))
        if fixed is not None and dtype is not None:
            raise ArgumentError(explain_error(f"{kind} has the dtype {fixed} already", f"dtype={dtype!r}", "leave dtype out"))
        return tensor(name, fixed or dtype, (None,) * rank if shape is None else shape)

    make.__name__ = make.__qualname__ = kind
    make.__doc__ = (f"A tensor variable of rank {rank} and dtype {fixed or '`config.floatX` (or `dtype`)'}; "
                    "`shape` gives sizes that are known (None: unknown).")
    return make


def _several(kind: str, make: Callable[..., Variable]) -> Callable[..., list[Variable]]:
    def plural(*names: str, dtype: Any = None) -> list[Variable]:
        return [make(name) if dtype is None else make(name, dtype) for name in names]

    plural.__name__ = plural.__qualname__ = kind
    plural.__doc__ = "One such variable for each name."
    return plural


scalar = _constructor("scalar", 0)
vector = _constructor("vector", 1)
matrix = _constructor("matrix", 2)
tensor3 = _constructor("tensor3", 3)
tensor4 = _constructor("tensor4", 4)
tensor5 = _constructor("tensor5", 5)
tensor6 = _constructor("tensor6", 6)
tensor7 = _constructor("tensor7", 7)
scalars, vectors, matrices = _several("scalars", scalar), _several("vectors", vector), _several("matrices", matrix)
tensor3s, tensor4s = _several("tensor3s", tensor3), _several("tensor4s", tensor4)

def _typed(prefix: str) -> list[Callable[..., Variable]]:
    """Theano's prefixed constructors of one dtype, from scalar to tensor7."""
    return [_constructor(prefix + kind, rank, _PREFIXES[prefix]) for kind, rank in _RANKS.items()]


bscalar, bvector, bmatrix, btensor3, btensor4, btensor5, btensor6, btensor7 = _typed("b")
wscalar, wvector, wmatrix, wtensor3, wtensor4, wtensor5, wtensor6, wtensor7 = _typed("w")
iscalar, ivector, imatrix, itensor3, itensor4, itensor5, itensor6, itensor7 = _typed("i")
lscalar, lvector, lmatrix, ltensor3, ltensor4, ltensor5, ltensor6, ltensor7 = _typed("l")
fscalar, fvector, fmatrix, ftensor3, ftensor4, ftensor5, ftensor6, ftensor7 = _typed("f")
dscalar, dvector, dmatrix, dtensor3, dtensor4, dtensor5, dtensor6, dtensor7 = _typed("d")


def _typed_plurals(prefix: str) -> list[Callable[..., list[Variable]]]:
    """Theano's prefixed constructors of several variables, from scalars to tensor4s."""
    return [_several(prefix + kind, _constructor(prefix + kind, rank, _PREFIXES[prefix])) for kind, rank in _PLURALS.items()]


bscalars, bvectors, bmatrices, btensor3s, btensor4s = _typed_plurals("b")
wscalars, wvectors, wmatrices, wtensor3s, wtensor4s = _typed_plurals("w")
iscalars, ivectors, imatrices, itensor3s, itensor4s = _typed_plurals("i")
lscalars, lvectors, lmatrices, ltensor3s, ltensor4s = _typed_plurals("l")
fscalars, fvectors, fmatrices, ftensor3s, ftensor4s = _typed_plurals("f")
dscalars, dvectors, dmatrices, dtensor3s, dtensor4s = _typed_plurals("d")


def row(name: str | None = None, dtype: Any = None) -> Variable:
    """A matrix with one row."""
    return tensor(name, dtype, (1, None))


def col(name: str | None = None, dtype: Any = None) -> Variable:
    """A matrix with one column."""
    return tensor(name, dtype, (None, 1))
