"""Gradients of a convolution in front of max pooling, from what the pooling received and where its maxima were.

The gradient of max pooling is zero but for one element of each window.  Where windows do not overlap, the gradients of the
convolution in front can read the few that are not: each is one number for a window and its place in it.  Made by rewrites only.
"""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...errors import InternalError
from ...graph import Op, TensorType
from ...graph.node import Array
from .. import conv_reference
from ..array_module import array_module
from ..convolution import Conv
from ..pool_reference import gather_winners, winners
from ..pooling import Pool
from ..spec import Kind, output_shape

LARGEST_WINDOW = 255
"""Elements of a window at most: places are kept as uint8."""


def has_places(pool: Pool) -> bool:
    """Whether a pool's windows lie apart and inside the image, and their places can be kept as uint8."""
    return (pool.mode == "max" and pool.stride == pool.window and not any(pool.pad_lo + pool.pad_hi) and pool.ignore_border
            and int(np.prod(pool.window)) <= LARGEST_WINDOW)


@dataclass(frozen=True, slots=True)
class PoolPlaces(Op):
    """x → the largest element of every window, and the place (uint8, row by row) of the first that is: in its window."""

    pool: Pool

    def __post_init__(self) -> None:
        if not has_places(self.pool):
            raise InternalError(f"places in the windows of {self.pool}")

    def infer(self, x: TensorType) -> tuple[TensorType, ...]:
        (pooled,) = self.pool.infer(x)
        return (pooled, TensorType("uint8", pooled.shape))

    def reference(self, x: Array) -> tuple[Array, ...]:
        lead = x.ndim - self.pool.rank
        at = np.unravel_index(winners(self.pool, x), x.shape[lead:])
        inside = [place % window for place, window in zip(at, self.pool.window, strict=True)]
        return (gather_winners(self.pool, x, x), np.ravel_multi_index(tuple(inside), self.pool.window).astype(np.uint8))

    def __str__(self) -> str:
        return f"PoolPlaces{{{self.pool}}}"


@dataclass(frozen=True, slots=True)
class PooledConv(Op):
    """`conv` (WGRAD or DGRAD) whose response is the gradient of `pool`; inputs: image or filters, gz, and the places.

    conv(image, pool'(gz)) or conv(pool'(gz), filters), without the products with zeros that are no maxima: an infinity meets no
    zero there and makes no NaN.  `conv.known` is the whole shape of the result.
    """

    conv: Conv
    pool: Pool

    def __post_init__(self) -> None:
        known = self.conv.known
        if self.conv.kind is Kind.FPROP or known is None or None in known or self.conv.epilogue or self.conv.layout:
            raise InternalError(f"{self.conv} behind the gradient of {self.pool}")

    def infer(self, first: TensorType, gz: TensorType, places: TensorType) -> tuple[TensorType, ...]:
        assert self.conv.known is not None
        pooled = self.pool.output_shape(self.response_shape(first.shape))
        if not gz.with_shape(pooled).accepts(gz) or places != TensorType("uint8", gz.shape) or first.dtype != gz.dtype:
            raise InternalError(f"{self} of {first}, {gz} and {places}")
        return (TensorType(first.dtype, self.conv.known),)

    def response_shape(self, first: tuple[int | None, ...]) -> tuple[int | None, ...]:
        """The shape of the convolution's response, from that of the image or the filters."""
        assert self.conv.known is not None
        x, w = (first, self.conv.known) if self.conv.kind is Kind.WGRAD else (self.conv.known, first)
        return output_shape(x, w, self.conv.spec)

    def reference(self, first: Array, gz: Array, places: Array) -> tuple[Array, ...]:
        package = array_module(first)
        response = package.zeros([size or 0 for size in self.response_shape(first.shape)], gz.dtype)
        inside = np.unravel_index(places.astype(np.int64), self.pool.window)
        at = package.indices(gz.shape)
        lead = gz.ndim - self.pool.rank
        spatial = [at[lead + axis] * window + inside[axis] for axis, window in enumerate(self.pool.window)]
        response[(*at[:lead], *spatial)] = gz
        assert self.conv.known is not None
        shape = tuple(size or 0 for size in self.conv.known)
        if self.conv.kind is Kind.WGRAD:
            return (conv_reference.wgrad(first, response, shape, self.conv.spec),)
        return (conv_reference.dgrad(response, first, shape, self.conv.spec),)

    def __str__(self) -> str:
        return f"Pooled{self.conv} behind {self.pool}"
