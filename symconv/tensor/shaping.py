"""Shapes, axes, creation, joining and indexing, as users type them (`T.reshape`, `T.concatenate`, `T.set_subtensor`).

Wherever a shape or a size is asked for, it may be made of ints and symbolic integer scalars such as `x.shape[0]`.
Theano's names `fill`, `second`, `alloc`, `join`, `shape_padleft` and `shape_padright` are kept.
"""
from __future__ import annotations

from ..ops.axis_moves import (
    expand_dims,
    moveaxis,
    shape_padaxis,
    shape_padleft,
    shape_padright,
    size,
    squeeze,
    swapaxes,
    transpose,
)
from ..ops.creation import (
    alloc,
    arange,
    eye,
    full,
    full_like,
    identity_like,
    one_hot,
    ones,
    ones_like,
    second,
    tri,
    tril,
    triu,
    zeros,
    zeros_like,
)
from ..ops.diagonals import diag, diagonal
from ..ops.indexing import getitem, inc_subtensor, set_subtensor, take
from ..ops.joining import concatenate, flip, join, repeat, roll, split, stack, tile
from ..ops.padding import pad
from ..ops.shape import broadcast_to, dimshuffle, flatten, reshape, shape
from ..ops.sorting import take_along_axis

fill = second

__all__ = [
    "alloc", "arange", "broadcast_to", "concatenate", "diag", "diagonal", "dimshuffle", "expand_dims", "eye", "fill",
    "flatten", "flip", "full", "full_like", "getitem", "identity_like", "inc_subtensor", "join", "moveaxis", "one_hot",
    "ones", "ones_like", "pad", "repeat", "reshape", "roll", "second", "set_subtensor", "shape", "shape_padaxis",
    "shape_padleft", "shape_padright", "size", "split", "squeeze", "stack", "swapaxes", "take", "take_along_axis", "tile",
    "transpose", "tri", "tril", "triu", "zeros", "zeros_like",
]
