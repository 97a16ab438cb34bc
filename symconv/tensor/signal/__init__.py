"""Signal processing: pooling under Theano's path, `T.signal.pool.pool_2d`."""
from __future__ import annotations

from . import pool

__all__ = ["pool"]
