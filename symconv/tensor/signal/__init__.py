"""Signal processing: pooling under Theano's paths, `T.signal.pool.pool_2d` and `T.signal.downsample.max_pool_2d`."""
from __future__ import annotations

from . import downsample, pool

__all__ = ["downsample", "pool"]
