"""The layout of a convolution's image and response in memory: channels in blocks (`nChw8c` in oneDNN's words), or last (`nhwc`).

A blocked tensor is an ordinary tensor with one axis more: (N, C / block, *spatial, block).  Channel c stands at block c // block,
lane c % block, so a vector register holds neighbouring channels of one pixel.  With channels last, which GPUs prefer, it is
(N, *spatial, C); this is the "block" `CHANNELS_LAST`.
"""
from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import InternalError
from ..graph import Variable
from ..graph.node import Array
from .shape import dimshuffle, reshape

Sizes = tuple[int | None, ...]
_SPATIAL = {1: "w", 2: "hw", 3: "dhw"}
_WORD = re.compile(r"nc(d?h?w)(\d+c)?|n(d?h?w)c")
CHANNELS_LAST = -1


@dataclass(frozen=True, slots=True)
class Layout:
    """Block sizes of the channels of x and of y; 0 where a tensor is plain (N, C, *spatial), `CHANNELS_LAST` where they are last.

    Filters are always plain.
    """

    x: int = 0
    y: int = 0

    def block(self, role: str) -> int:
        """The block size of the tensor of a role."""
        return {"x": self.x, "y": self.y, "w": 0}[role]

    def text(self, read: str, produced: str, ndim: int) -> str:
        """As in a problem string, for the roles of the tensor read first and of the result.

        >>> Layout(8, 8).text("x", "y", 2), Layout(0, 8).text("x", "y", 2)
        ('nchw8c', 'nchw>nchw8c')
        >>> Layout(CHANNELS_LAST, CHANNELS_LAST).text("x", "y", 2)
        'nhwc'
        """
        words = [layout_word(self.block(role), ndim) for role in (read, produced)]
        return words[0] if words[0] == words[1] else ">".join(words)


def parse_layout(text: str, read: str, produced: str) -> Layout | None:
    """The layout that a word of a problem string says; None for any other word.

    >>> parse_layout("nchw>nchw8c", "x", "y")
    Layout(x=0, y=8)
    """
    matches = [_WORD.fullmatch(word) for word in text.split(">")]
    if len(matches) > 2 or None in matches or len({match[1] or match[3] for match in matches if match}) > 1:
        return None
    blocks = [CHANNELS_LAST if match[3] else int((match[2] or "0c")[:-1]) for match in matches if match]
    return Layout(**dict(zip((read, produced), (blocks[0], blocks[-1]), strict=True)))


def layout_word(block: int, ndim: int) -> str:
    """How a problem string says that a tensor of so many spatial axes is plain (0), in blocks, or has its channels last.

    >>> layout_word(0, 2), layout_word(16, 1), layout_word(CHANNELS_LAST, 3)
    ('nchw', 'ncw16c', 'ndhwc')
    """
    spatial = _SPATIAL[ndim]
    return f"n{spatial}c" if block == CHANNELS_LAST else f"nc{spatial}{block}c" if block else f"nc{spatial}"


def blocked_shape(shape: Sequence[int | None], block: int) -> Sizes:
    """The shape in memory of a tensor (N, C, *spatial).

    >>> blocked_shape((2, 24, 7, 7), 8)
    (2, 3, 7, 7, 8)
    """
    if not block:
        return tuple(shape)
    if block == CHANNELS_LAST:
        return (shape[0], *shape[2:], shape[1])
    channels = shape[1]
    if channels is None or channels % block:
        raise InternalError(f"{channels} channels in blocks of {block}")
    return (shape[0], channels // block, *shape[2:], block)


def plain_shape(shape: Sequence[int | None], block: int) -> Sizes:
    """(N, C, *spatial) of a tensor of a shape in memory."""
    if not block:
        return tuple(shape)
    if block == CHANNELS_LAST:
        return (shape[0], shape[-1], *shape[1:-1])
    blocks = shape[1]
    if blocks is None or shape[-1] != block:
        raise InternalError(f"a tensor of shape {tuple(shape)} is not in blocks of {block}")
    return (shape[0], blocks * block, *shape[2:-1])


def to_blocked(x: Variable, block: int) -> Variable:
    """(N, C, *spatial) as (N, C / block, *spatial, block), or (N, *spatial, C); C must be known and divide.

    >>> from symconv.ops.constants import constant
    >>> import numpy as np
    >>> to_blocked(constant(np.zeros((2, 16, 5), "float32")), 8).type.shape
    (2, 2, 5, 8)
    """
    if block == CHANNELS_LAST:
        return dimshuffle(x, (0, *range(2, x.ndim), 1))
    n, _, *spatial = x.type.static_shape
    shape = blocked_shape(x.type.shape, block)
    split = reshape(x, (n, shape[1], block, *spatial))
    return dimshuffle(split, (0, 1, *range(3, split.ndim), 2))


def from_blocked(x: Variable, block: int) -> Variable:
    """The inverse of `to_blocked`."""
    if block == CHANNELS_LAST:
        return dimshuffle(x, (0, x.ndim - 1, *range(1, x.ndim - 1)))
    moved = dimshuffle(x, (0, 1, x.ndim - 1, *range(2, x.ndim - 1)))
    return reshape(moved, plain_shape(x.type.static_shape, block))


def array_to_blocked(x: Array, block: int) -> Array:
    """An array (N, C, *spatial) in blocks; as it is where block is 0."""
    if not block:
        return x
    if block == CHANNELS_LAST:
        return np.moveaxis(x, 1, -1)
    split = x.reshape(x.shape[0], x.shape[1] // block, block, *x.shape[2:])
    return split.transpose(0, 1, *range(3, split.ndim), 2)


def array_from_blocked(x: Array, block: int) -> Array:
    """The inverse of `array_to_blocked`."""
    if not block:
        return x
    if block == CHANNELS_LAST:
        return np.moveaxis(x, -1, 1)
    return x.transpose(0, 1, x.ndim - 1, *range(2, x.ndim - 1)).reshape(x.shape[0], x.shape[1] * block, *x.shape[2:-1])


def plain_strides(strides: Sequence[int], block: int) -> tuple[int, ...]:
    """The strides of (N, C, *spatial) in the memory of a tensor that is plain or has its channels last.

    >>> plain_strides((72, 24, 8, 1), CHANNELS_LAST)
    (72, 1, 24, 8)
    """
    if block not in (0, CHANNELS_LAST):
        raise InternalError(f"channels in blocks of {block} have no one stride")
    return tuple(strides) if not block else (strides[0], strides[-1], *strides[1:-1])
