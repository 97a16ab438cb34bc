"""Theano's `theano.tensor.signal.pool`: the same functions as in `symconv.tensor.nnet`."""
from __future__ import annotations

from ..nnet.pooling import max_pool_2d, max_pool_3d, pool_1d, pool_2d, pool_3d

__all__ = ["max_pool_2d", "max_pool_3d", "pool_1d", "pool_2d", "pool_3d"]
