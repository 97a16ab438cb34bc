"""Theano's older path of pooling, `theano.tensor.signal.downsample`."""
from __future__ import annotations

from typing import Any

from ...graph import Variable
from ..nnet.pooling import pool_2d

__all__ = ["max_pool_2d"]


def max_pool_2d(input: Any, ds: Any, ignore_border: bool = False, st: Any = None, padding: Any = (0, 0),
                mode: str = "max") -> Variable:
    """`pool_2d` in older words: `ds` the window, `st` the stride (the window by default), `padding` on both sides.

    As there, and other than in `pool_2d`, windows that reach over the end are kept by default.

    >>> import numpy as np
    >>> max_pool_2d(np.zeros((1, 1, 5, 4)), (2, 2)).type.shape
    (1, 1, 3, 2)
    """
    return pool_2d(input, ds, ignore_border=ignore_border, stride=st, pad=padding, mode=mode)
