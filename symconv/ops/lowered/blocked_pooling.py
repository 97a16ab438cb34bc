"""Pooling of tensors whose channels lie in blocks or last (`ops/layout.py`); made by rewrites only."""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...errors import InternalError
from ...graph import Op, TensorType
from ...graph.node import Array
from ..array_module import array_module
from ..pooling import AveragePoolGrad, MaxPoolGrad, Pool


@dataclass(frozen=True, slots=True)
class BlockedPool(Op):
    """`pool` over the axes in front of the last one, which holds channels."""

    pool: Pool

    def infer(self, x: TensorType) -> tuple[TensorType, ...]:
        """As the pool's, the last axis kept."""
        (plain,) = self.pool.infer(x.with_shape(x.shape[:-1]))
        return (plain.with_shape((*plain.shape, x.shape[-1])),)

    def reference(self, x: Array) -> tuple[Array, ...]:
        """The pool's, the last axis in front of those that are pooled."""
        first = x.ndim - 1 - self.pool.rank
        (result,) = self.pool.reference(np.moveaxis(x, -1, first))
        return (np.moveaxis(result, first, -1),)

    def __str__(self) -> str:
        return f"Blocked{self.pool}"


@dataclass(frozen=True, slots=True)
class BlockedPoolGrad(Op):
    """The gradient of `BlockedPool` for images of the spatial `sizes`: (x, gz) → gx for the largest element, else (gz,) → gx."""

    pool: Pool
    sizes: tuple[int, ...]

    def infer(self, *types: TensorType) -> tuple[TensorType, ...]:
        """The image's type."""
        gz = types[-1]
        if len(types) != (2 if self.pool.mode == "max" else 1):
            raise InternalError(f"{self} with {len(types)} inputs")
        lead = gz.shape[:gz.ndim - 1 - self.pool.rank]
        result = gz.with_shape((*lead, *self.sizes, gz.shape[-1]))
        wanted = BlockedPool(self.pool).infer(result)[0]
        if not wanted.accepts(gz) or not all(result.accepts(each) for each in types[:-1]):
            raise InternalError(f"{self} of {', '.join(map(str, types))}")
        return (result,)

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        """The plain gradient's, the last axis in front of those that are pooled."""
        first = arrays[-1].ndim - 1 - self.pool.rank
        moved = [np.moveaxis(each, -1, first) for each in arrays]
        if self.pool.mode == "max":
            (result,) = MaxPoolGrad(self.pool).reference(*moved)
        else:
            shape = (*moved[-1].shape[:first + 1], *self.sizes)
            (result,) = AveragePoolGrad(self.pool, shape).reference(moved[-1], array_module(moved[-1]).array(shape, np.int64))
        return (np.moveaxis(result, first, -1),)

    def __str__(self) -> str:
        return f"Blocked{self.pool}Grad"
