"""Products of matrices: one op, `MatMul`, and the builders matmul, dot, batched_dot and outer."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .. import dtypes
from ..errors import GraphTypeError, ShapeError, explain_error
from ..graph import Apply, Op, TensorType, Variable, apply_op
from ..graph.node import Array
from .broadcasting import broadcast_shapes
from .constants import as_variable
from .promotion import common_dtype


@dataclass(frozen=True, slots=True)
class MatMul(Op):
    """Matrix products: a (…, M, K) and b (…, K, N) give (…, M, N).

    Ranks are equal and at least 2, the leading axes broadcast as NumPy's; one dtype. float16 and bfloat16 are accumulated in
    float32, integers wrap, bool is or of ands.
    """

    def infer(self, a: TensorType, b: TensorType) -> tuple[TensorType, ...]:
        """ShapeError where the inner sizes or the batch sizes differ."""
        if a.dtype != b.dtype or a.ndim != b.ndim or a.ndim < 2:
            raise GraphTypeError(explain_error("a matrix product takes two tensors of one dtype and one rank from 2",
                                               f"{a} and {b}", "use matmul, which casts and adds axes"))
        if None not in (a.shape[-1], b.shape[-2]) and a.shape[-1] != b.shape[-2]:
            raise ShapeError(explain_error("the inner sizes of a matrix product differ",
                                           f"{a.shape[-1]} and {b.shape[-2]} in {a} and {b}",
                                           "the last axis of the first must match the last but one of the second"))
        batch = broadcast_shapes([a.shape[:-2], b.shape[:-2]])
        if batch is None:
            raise ShapeError(explain_error("the leading axes of a matrix product do not broadcast together", f"{a} and {b}"))
        return (a.with_shape((*batch, a.shape[-2], b.shape[-1])),)

    def grad(self, apply: Apply, cotangents: Sequence[Variable | None]) -> Sequence[Variable | None]:
        """g·bᵀ and aᵀ·g, summed over leading axes that were broadcast."""
        from .unbroadcast import unbroadcast

        (g,), (a, b) = cotangents, apply.inputs
        if g is None or not dtypes.is_float(a.dtype):
            return None, None
        return (unbroadcast(apply_op(MatMul(), g, transposed(b)), a, [b], fixed=2),
                unbroadcast(apply_op(MatMul(), transposed(a), g), b, [a], fixed=2))

    def reference(self, a: Array, b: Array) -> tuple[Array, ...]:
        """np.matmul."""
        working = dtypes.accumulator(a.dtype.name) if dtypes.is_float(a.dtype.name) else a.dtype.name
        wide = [array.astype(dtypes.numpy_dtype(working), copy=False) for array in (a, b)]
        return ((wide[0] @ wide[1]).astype(a.dtype, copy=False),)

    def __str__(self) -> str:
        return "matmul"


def transposed(x: Variable) -> Variable:
    """x with its last two axes exchanged."""
    return shuffled(x, [*range(x.ndim - 2), x.ndim - 1, x.ndim - 2])


def matmul(a: Any, b: Any) -> Variable:
    """Matrix product by NumPy's rules: stacks of matrices over the last two axes, leading axes broadcast.

    A vector on the left is a row, on the right a column, and its axis goes away again.  Raises GraphTypeError for scalars
    and ShapeError where sizes differ.

    >>> import numpy as np
    >>> matmul(np.zeros((5, 2, 3)), np.zeros((3, 4))).type.shape
    (5, 2, 4)
    """
    a, b = together(a, b)
    if a.ndim == 0 or b.ndim == 0:
        raise GraphTypeError(explain_error("matmul takes no scalars", f"{a.type} and {b.type}", "use *"))
    left = shuffled(a, ["x", 0]) if a.ndim == 1 else a
    right = shuffled(b, [0, "x"]) if b.ndim == 1 else b
    ndim = max(left.ndim, right.ndim)
    result = apply_op(MatMul(), _padded(left, ndim), _padded(right, ndim))
    dropped = ([ndim - 2] if a.ndim == 1 else []) + ([ndim - 1] if b.ndim == 1 else [])
    return shuffled(result, [axis for axis in range(ndim) if axis not in dropped])


def dot(a: Any, b: Any) -> Variable:
    """NumPy's dot: the sum of products over the last axis of `a` and the last but one (or only) axis of `b`.

    Two vectors give a scalar, two matrices their product, with a scalar it is `*`; else the axes of `a` without its last,
    then those of `b` without its last but one.

    >>> import numpy as np
    >>> dot(np.zeros((2, 3)), np.zeros((5, 3, 4))).type.shape
    (2, 5, 4)
    """
    a, b = together(a, b)
    if a.ndim == 0 or b.ndim == 0:
        from .elementwise import mul

        return mul(a, b)
    if a.ndim <= 2 and b.ndim <= 2:
        return matmul(a, b)
    from .tensordot import tensordot

    return tensordot(a, b, ([a.ndim - 1], [max(b.ndim - 2, 0)]))


def batched_dot(a: Any, b: Any) -> Variable:
    """The matrix product of every pair along the first axis: (B, M, K) and (B, K, N) give (B, M, N).

    Either may be a stack of vectors (B, K), whose axis then goes away: (B, K) and (B, K) give (B,).
    """
    a, b = together(a, b)
    if a.ndim not in (2, 3) or b.ndim not in (2, 3):
        raise GraphTypeError(explain_error("batched_dot takes tensors of rank 2 or 3", f"{a.type} and {b.type}"))
    left = a if a.ndim == 3 else shuffled(a, [0, "x", 1])
    right = b if b.ndim == 3 else shuffled(b, [0, 1, "x"])
    result = apply_op(MatMul(), left, right)
    return shuffled(result, [0] + ([1] if a.ndim == 3 else []) + ([2] if b.ndim == 3 else []))


def outer(a: Any, b: Any) -> Variable:
    """The product of every element of `a` with every element of `b`, both flattened: (M,) and (N,) give (M, N)."""
    from .elementwise import mul
    from .shape import reshape

    left, right = (x if x.ndim == 1 else reshape(x, (-1,)) for x in together(a, b))
    return mul(shuffled(left, [0, "x"]), shuffled(right, ["x", 0]))


def together(a: Any, b: Any) -> tuple[Variable, Variable]:
    """Both as variables of the dtype in which they meet."""
    dtype = common_dtype((a, b))
    return as_variable(a, dtype), as_variable(b, dtype)


def _padded(x: Variable, ndim: int) -> Variable:
    return shuffled(x, ["x"] * (ndim - x.ndim) + list(range(x.ndim)))


def shuffled(x: Variable, pattern: Sequence[Any]) -> Variable:
    """x with its axes in another order."""
    from .shape import dimshuffle

    return dimshuffle(x, pattern)
