"""DGRAD scattered: a small product for each tap, added to a padded image at the tap's place; nothing else is multiplied.

Where images are small and kernels large, the gathering kernels multiply what lies in the padding too: with 5x5 taps over a
response of 8x8 pixels twice as much as there is.
"""
from __future__ import annotations

import math

from ..ops.spec import Kind
from ..target import Target
from .conv_common import (
    Geometry,
    PixelConvolution,
    Triple,
    align,
    conv_kernel,
    conv_name,
    conv_parts,
    conv_source,
    turning_seconds,
)
from .gemm_tile import PARALLEL_FLOPS, START_SECONDS, GemmTile, compute_seconds
from .kernel import Kernel, Problem

_IMAGE_BYTES = 64 * 1024
"""What the padded channels of a task may fill of the second cache, if there is more than one of them."""

_MOST_BYTES = 512 * 1024
"""What one padded channel, and a response copied with whole vectors, may fill."""

_RESPONSE_BYTES = 16 * 1024
"""What the vectors of the response that are worked on at once may fill of the first cache."""

_SHARE = 0.72
"""Share of the peak that it was measured to reach with 50 filters; fewer have less to sum before it is added."""


class ConvScatter(PixelConvolution):
    """Filters turned times rows of the response as they lie, for each tap, added up in a padded image."""

    name = "conv_scatter"

    def refuse(self, problem: Problem, target: Target) -> str | None:
        """Only DGRAD of float32 and float64, stride 1 along the last axis, of images that fit the second cache."""
        conv, geometry, tile = conv_parts(problem, target)
        if conv.kind is not Kind.DGRAD:
            return "it makes images alone"
        reason = super().refuse(problem, target)
        if reason is None and geometry.stride[2] != 1:
            reason = f"it adds whole rows, which a stride of {geometry.stride[2]} along the last axis takes apart"
        nbytes = max(_plane(geometry, tile), _copied_lines(geometry, tile)) * tile.itemsize
        if reason is None and nbytes > _MOST_BYTES:
            reason = f"a padded image, or the response of one, takes {nbytes} bytes: more than {_MOST_BYTES}"
        return reason

    def estimate(self, problem: Problem, target: Target) -> float:
        """A share of the peak, less with few filters or channels at once and rows that fill their vectors badly.

        The filters are read for every block of the response, the response for every block of channels: large images leave room
        for one channel at a time.
        """
        _, geometry, tile = conv_parts(problem, target)
        threads = max(1, target.threads)
        vectors = geometry.inside[0] * geometry.inside[1] * -(-geometry.inside[2] // tile.lanes)
        filters = geometry.groups * geometry.rows * geometry.channels * geometry.taps
        flops = 2 * geometry.batch * filters * vectors * tile.lanes
        tasks = max(1, -(-geometry.rows // _channels_of_task(geometry, tile, target)))
        together = -(-geometry.rows // tasks)
        height = together / max(1, -(-together // tile.rows))
        share = _SHARE * min(1.0, height / 5) * geometry.channels / (geometry.channels + 6)
        blocks = -(-vectors // _spots_at_once(geometry, tile))
        read = geometry.batch * filters * max(0, blocks - 1) * tile.itemsize
        moved = 2 * geometry.batch * geometry.groups * geometry.rows * _plane(geometry, tile) * tile.itemsize
        response = geometry.groups * geometry.channels * math.prod(geometry.inside) * tile.itemsize
        again = target.copy_seconds(geometry.batch * response * (tasks - 1) / 2, working_set=response)
        seconds = again + compute_seconds(flops, tile.dtype, target, max(share, 0.01))
        return START_SECONDS + seconds + target.copy_seconds(read / 2 + moved) + turning_seconds(geometry) / threads

    def build(self, problem: Problem, target: Target) -> Kernel:
        """The kernel; its workspace holds the spots, the turned filters, and each thread's padded image and response."""
        conv, geometry, tile = conv_parts(problem, target)
        name = conv_name(problem, f"scatter_{tile.suffix}")
        source = conv_source("conv_scatter.c.j2", name, problem, tile)
        threads = 1 if conv.flops < PARALLEL_FLOPS else target.threads
        plane, block = _plane(geometry, tile), _channels_of_task(geometry, tile, target)
        scratch = align((block * plane + _copied_lines(geometry, tile)) * tile.itemsize) // tile.itemsize
        spots = geometry.inside[0] * geometry.inside[1] * -(-geometry.inside[2] // tile.lanes)
        spots_bytes = spots * (align(16 + tile.vector_bytes) + 64)
        turned = align(geometry.groups * geometry.taps * geometry.rows * geometry.channels * tile.itemsize) // tile.itemsize
        numbers = (*geometry.numbers, threads, *_padded(geometry), plane, block, _spots_at_once(geometry, tile), turned, scratch)
        workspace = align(spots_bytes) + (turned + scratch * max(1, threads)) * tile.itemsize
        return conv_kernel(problem, name, source, numbers, workspace)


def _padded(geometry: Geometry) -> Triple:
    """Sizes of an image with its padding, as far as taps reach."""
    a, b, c = ((size - 1) * stride + (kernel - 1) * dilation + 1 for size, stride, kernel, dilation in zip(
        geometry.inside, geometry.stride, geometry.kernel, geometry.dilation, strict=True))
    return a, b, c


def _plane(geometry: Geometry, tile: GemmTile) -> int:
    """Elements of a padded channel, with those behind it that the last vector reaches."""
    return -(-(math.prod(_padded(geometry)) + tile.lanes) // tile.lanes) * tile.lanes


def _copied_lines(geometry: Geometry, tile: GemmTile) -> int:
    """Elements of a response whose lines are filled up to whole vectors; none where they are whole."""
    size = geometry.inside[2]
    if size % tile.lanes == 0:
        return 0
    return geometry.channels * geometry.inside[0] * geometry.inside[1] * -(-size // tile.lanes) * tile.lanes


def _channels_of_task(geometry: Geometry, tile: GemmTile, target: Target) -> int:
    """Channels whose padded images fit the second cache together, fewer where tasks would be too few."""
    block = max(1, min(geometry.rows, _IMAGE_BYTES // max(1, _plane(geometry, tile) * tile.itemsize)))
    while block > tile.rows and geometry.batch * geometry.groups * -(-geometry.rows // block) < 4 * target.threads:
        block = (block + 1) // 2
    return block


def _spots_at_once(geometry: Geometry, tile: GemmTile) -> int:
    """Vectors of the response, an even number, that the first cache holds for all filters."""
    return max(1, _RESPONSE_BYTES // max(1, 2 * geometry.channels * tile.vector_bytes)) * 2
