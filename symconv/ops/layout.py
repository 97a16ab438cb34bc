"""Channels in blocks: the layout of a convolution's image and response in memory (`nChw8c` in oneDNN's words).

A blocked tensor is an ordinary tensor with one axis more: (N, C / block, *spatial, block).  Channel c stands at block c // block,
lane c % block, so a vector register holds neighbouring channels of one pixel.
"""
from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ..errors import InternalError
from ..graph import Variable
from ..graph.node import Array
from .shape import dimshuffle, reshape

Sizes = tuple[int | None, ...]
_SPATIAL = {1: "w", 2: "hw", 3: "dhw"}
_TEXT = re.compile(r"nc(d?h?w)(\d+c)?(?:>nc(d?h?w)(\d+c)?)?")


@dataclass(frozen=True, slots=True)
class Layout:
    """Block sizes of the channels of x and of y; 0 where a tensor is plain (N, C, *spatial). Filters are always plain."""

    x: int = 0
    y: int = 0

    def block(self, role: str) -> int:
        """The block size of the tensor of a role."""
        return {"x": self.x, "y": self.y, "w": 0}[role]

    def text(self, read: str, produced: str, ndim: int) -> str:
        """As in a problem string, for the roles of the tensor read first and of the result.

        >>> Layout(8, 8).text("x", "y", 2), Layout(0, 8).text("x", "y", 2)
        ('nchw8c', 'nchw>nchw8c')
        """
        words = [f"nc{_SPATIAL[ndim]}" + (f"{self.block(role)}c" if self.block(role) else "") for role in (read, produced)]
        return words[0] if words[0] == words[1] else ">".join(words)


def parse_layout(text: str, read: str, produced: str) -> Layout | None:
    """The layout that a word of a problem string says; None for any other word.

    >>> parse_layout("nchw>nchw8c", "x", "y")
    Layout(x=0, y=8)
    """
    match = _TEXT.fullmatch(text)
    if match is None or (match[3] is not None and match[3] != match[1]):
        return None
    blocks = [int(each[:-1]) if each else 0 for each in (match[2], match[2] if match[3] is None else match[4])]
    return Layout(**dict(zip((read, produced), blocks, strict=True)))


def blocked_shape(shape: Sequence[int | None], block: int) -> Sizes:
    """The shape in memory of a tensor (N, C, *spatial).

    >>> blocked_shape((2, 24, 7, 7), 8)
    (2, 3, 7, 7, 8)
    """
    if not block:
        return tuple(shape)
    channels = shape[1]
    if channels is None or channels % block:
        raise InternalError(f"{channels} channels in blocks of {block}")
    return (shape[0], channels // block, *shape[2:], block)


def plain_shape(shape: Sequence[int | None], block: int) -> Sizes:
    """(N, C, *spatial) of a tensor of a shape in memory."""
    if not block:
        return tuple(shape)
    blocks = shape[1]
    if blocks is None or shape[-1] != block:
        raise InternalError(f"a tensor of shape {tuple(shape)} is not in blocks of {block}")
    return (shape[0], blocks * block, *shape[2:-1])


def to_blocked(x: Variable, block: int) -> Variable:
    """(N, C, *spatial) as (N, C / block, *spatial, block); C must be known and divide.

    >>> from symconv.ops.constants import constant
    >>> import numpy as np
    >>> to_blocked(constant(np.zeros((2, 16, 5), "float32")), 8).type.shape
    (2, 2, 5, 8)
    """
    n, _, *spatial = x.type.static_shape
    shape = blocked_shape(x.type.shape, block)
    split = reshape(x, (n, shape[1], block, *spatial))
    return dimshuffle(split, (0, 1, *range(3, split.ndim), 2))


def from_blocked(x: Variable, block: int) -> Variable:
    """The inverse of `to_blocked`."""
    moved = dimshuffle(x, (0, 1, x.ndim - 1, *range(2, x.ndim - 1)))
    return reshape(moved, plain_shape(x.type.static_shape, block))


def array_to_blocked(x: Array, block: int) -> Array:
    """An array (N, C, *spatial) in blocks; as it is where block is 0."""
    if not block:
        return x
    split = x.reshape(x.shape[0], x.shape[1] // block, block, *x.shape[2:])
    return split.transpose(0, 1, *range(3, split.ndim), 2)


def array_from_blocked(x: Array, block: int) -> Array:
    """The inverse of `array_to_blocked`."""
    if not block:
        return x
    return x.transpose(0, 1, x.ndim - 1, *range(2, x.ndim - 1)).reshape(x.shape[0], x.shape[1] * block, *x.shape[2:-1])
