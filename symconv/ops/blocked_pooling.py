"""Pooling of tensors in blocks of channels; made by rewrites only."""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..graph import Op, TensorType
from ..graph.node import Array
from .pooling import Pool


@dataclass(frozen=True, slots=True)
class BlockedPool(Op):
    """`pool` over the axes in front of the last one, which holds the channels of a block (`ops/layout.py`)."""

    pool: Pool

    def infer(self, x: TensorType) -> tuple[TensorType, ...]:
        (plain,) = self.pool.infer(x.with_shape(x.shape[:-1]))
        return (plain.with_shape((*plain.shape, x.shape[-1])),)

    def reference(self, x: Array) -> tuple[Array, ...]:
        first = x.ndim - 1 - self.pool.rank
        (result,) = self.pool.reference(np.moveaxis(x, -1, first))
        return (np.moveaxis(result, first, -1),)

    def __str__(self) -> str:
        return f"Blocked{self.pool}"
