"""Sums and products of all elements up to each, along one axis."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import dtypes
from ..errors import GraphTypeError, explain_error
from ..graph import Apply, Op, TensorType, Variable, apply_op
from ..graph.node import Array
from .axes import normalize_axis
from .constants import as_variable
from .reductions import sum_dtype
from .shape import reshape

_FUNCTIONS: dict[str, Any] = {"cumsum": np.cumsum, "cumprod": np.cumprod}


@dataclass(frozen=True, slots=True)
class Cumulative(Op):
    """The running sum (`kind` "cumsum") or product ("cumprod") along `axis`, from 0; of x's dtype.

    float16 and bfloat16 are accumulated in float32.  It has no generated kernel yet and runs its reference.
    """

    kind: str
    axis: int

    @property
    def name(self) -> str:
        """The kind."""
        return self.kind

    def infer(self, x: TensorType) -> tuple[TensorType, ...]:
        """The type of x."""
        if self.axis >= x.ndim or x.dtype == "bool":
            raise GraphTypeError(explain_error(f"{self.kind} along axis {self.axis} takes numbers of a rank above it", str(x)))
        return (x,)

    def grad(self, apply: Apply, cotangents: Sequence[Variable | None]) -> Sequence[Variable | None]:
        """The running sum from the other end; of a product, of gz·z, over x: right where no element is 0."""
        (gz,), (x,), (z,) = cotangents, apply.inputs, apply.outputs
        if gz is None or not dtypes.is_float(x.dtype):
            return (None,)
        return (_from_the_end(gz, self.axis) if self.kind == "cumsum" else _from_the_end(gz * z, self.axis) / x,)

    def reference(self, x: Array) -> tuple[Array, ...]:
        """NumPy's."""
        name = x.dtype.name
        wide = dtypes.numpy_dtype(dtypes.accumulator(name) if dtypes.is_float(name) else name)
        return (_FUNCTIONS[self.kind](x, axis=self.axis, dtype=wide).astype(x.dtype, copy=False),)

    def __str__(self) -> str:
        return f"{self.kind}{{axis={self.axis}}}"


def _from_the_end(x: Variable, axis: int) -> Variable:
    from .joining import flip

    return flip(apply_op(Cumulative("cumsum", axis), flip(x, axis)), axis)


def cumsum(x: Any, axis: int | None = None) -> Variable:
    """The sum of all elements up to each along `axis` (None: of all elements in row-major order, a vector).

    bool and integers become int64 or uint64, as for `sum`; floats keep their dtype.

    >>> cumsum(as_variable([[1, 2], [3, 4]]), axis=0).eval().tolist()
    [[1, 2], [4, 6]]
    """
    return _along("cumsum", x, axis)


def cumprod(x: Any, axis: int | None = None) -> Variable:
    """The product of all elements up to each; arguments and dtypes as for `cumsum`.

    Its gradient is right where no element is 0 (there it is NaN or infinite).
    """
    return _along("cumprod", x, axis)


def _along(kind: str, x: Any, axis: int | None) -> Variable:
    variable = as_variable(x)
    wide = as_variable(variable, sum_dtype(variable.dtype))
    if axis is None:
        return apply_op(Cumulative(kind, 0), wide if wide.ndim == 1 else reshape(wide, (-1,)))
    return apply_op(Cumulative(kind, normalize_axis(axis, wide.ndim)), wide)
