"""WGRAD as an implicit matrix product over the pixels of all images, for any spec."""
from __future__ import annotations

from ..target import Target
from .conv_common import (
    RUN_BYTES,
    SEGMENT_BYTES,
    TAP_BYTES,
    FilterGradient,
    Geometry,
    align,
    conv_kernel,
    conv_name,
    conv_parts,
    conv_source,
    reads_plainly,
)
from .gemm_tile import PARALLEL_FLOPS, START_SECONDS, GemmBlock, GemmTile, compute_seconds
from .kernel import Kernel, Problem

_TASK_ROWS = 288
_TASK_PANELS = 16
_TASKS = 16
"""Tasks that there should be at least: where filters and channels give fewer, the pixels are sliced."""


class ConvWgrad(FilterGradient):
    """Patches (rows that run along the pixels) times the response, transposed while it is packed."""

    name = "conv_wgrad_gemm"

    def estimate(self, problem: Problem, target: Target) -> float:
        """A share of the peak that falls with few filters, and the copying of patches, in pieces that stay in the second cache."""
        _, geometry, tile = conv_parts(problem, target)
        patches = geometry.groups * geometry.channels * geometry.taps * geometry.pixels
        columns = -(-geometry.rows // tile.lanes) * tile.lanes
        copied = geometry.groups * columns * geometry.pixels + (0 if reads_plainly(geometry) else patches)
        seconds = compute_seconds(2 * patches * columns, tile.dtype, target, 0.8)
        copying = target.copy_seconds(copied * tile.itemsize * 2, working_set=0)  # pieces that stay in the cache
        return START_SECONDS + seconds + copying

    def build(self, problem: Problem, target: Target) -> Kernel:
        """The kernel; its workspace holds the taps, the partial sums of every slice, and each thread's packed operands."""
        conv, geometry, tile = conv_parts(problem, target)
        block = GemmBlock(128, 0, _TASK_ROWS, _TASK_PANELS * tile.columns)
        name = conv_name(problem, f"gemm_{tile.suffix}")
        source = conv_source("conv_wgrad.c.j2", name, problem, tile, block=block, task_rows=_TASK_ROWS, task_panels=_TASK_PANELS)
        slices = count_slices(geometry, tile, block)
        panels = -(-geometry.rows // tile.columns)
        partial = slices * geometry.groups * panels * tile.columns * geometry.channels * geometry.taps
        head = TAP_BYTES * geometry.taps + partial * tile.itemsize
        partial += (align(head) - head) // tile.itemsize
        scratch = (_TASK_PANELS * tile.columns * block.depth + _TASK_ROWS * (block.depth + tile.lanes)) * tile.itemsize
        scratch = align(scratch + block.depth * (SEGMENT_BYTES + RUN_BYTES))
        numbers = (*geometry.numbers, target.threads, slices, partial, scratch, int(conv.flops < PARALLEL_FLOPS),
                   int(reads_plainly(geometry)))
        return conv_kernel(problem, name, source, numbers, align(head) + scratch * target.threads)


def count_slices(geometry: Geometry, tile: GemmTile, block: GemmBlock) -> int:
    """Into how many slices the pixels are cut; it depends on sizes only, so that the bits do not depend on the threads."""
    row_tasks = -(-geometry.channels * geometry.taps // _TASK_ROWS)
    column_tasks = -(-geometry.rows // (_TASK_PANELS * tile.columns))
    tasks = max(1, geometry.groups * row_tasks * column_tasks)
    return max(1, min(-(-_TASKS // tasks), geometry.pixels // (4 * block.depth)))
