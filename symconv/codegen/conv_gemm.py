"""FPROP and DGRAD as an implicit matrix product: the image's patches are copied panel by panel, never as a whole."""
from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

from ..ops.spec import Kind
from ..target import Target
from .conv_common import (
    RUN_BYTES,
    TAP_BYTES,
    Geometry,
    PixelConvolution,
    align,
    conv_kernel,
    conv_name,
    conv_parts,
    conv_source,
    reads_plainly,
)
from .gemm_tile import PARALLEL_FLOPS, START_SECONDS, GemmBlock, GemmTile, compute_seconds, make_block
from .kernel import Kernel, Operand, Preparation, Problem
from .templates import render_kernel

_TASK_PANELS = 12
"""Panels of a task at most. With 8 of them, 6 problems of batch 8 took 0.98 to 1.04 times as long: no gain."""

_FIRST_CACHE = 20 * 1024
"""Bytes of the first cache that panels may take together."""

_WEIGHTS_CACHE = 192 * 1024
"""Bytes of the second cache that weights may take, beside the panels."""

_FEW_TILES = 6
"""Register tiles of rows up to which a 1x1 kernel's pixels are read where they lie: copying them would pay only for more."""

_LEAST_PIXELS = 128
"""Pixels from which on FPROP's weights are brought into tiles: with fewer, it would cost training as much as products gain."""

_SHARED_BYTES = 1024 * 1024
"""What the panels of a whole phase may take that are packed first where rows are cut too, if that is expected to pay: then each
part of the rows needs them. With 3 MB it was up to 40 % slower than packing again."""

LINE_SECONDS, PLAIN_LINE_SECONDS = 12.0e-9, 3.5e-9
"""What a line of the image costs at its first use: read in short pieces, or in long ones."""

PATCH_SECONDS = 0.3e-9
"""What 4 bytes of a patch cost to copy where rows have 28 pixels. This and what is above: measured with 1x1, 3x3 and 7x7 filters,
batch 1 and 8 (benchmarks/conv_choice.py)."""

WEIGHT_CYCLES, PACK_CYCLES, SHARED_CYCLES = 0.15, 16.0, 60.0
"""Cycles that a row's weight and a panel's row of the packed image take more for each task that needs them, and what a panel's
row takes more that is packed first: it goes to memory and comes back, half of it from another core (50 to 70, measured with 196
panels of 64 rows and with 49 of 128)."""

SCATTER_SECONDS = 2.0e-9
"""What an element of the result costs more where a stride's phases are stored one after the other, measured the same way."""


class ConvGemm(PixelConvolution):
    """Filters times patches in register tiles. The filters are brought into tiles beforehand, but for FPROP of few pixels."""

    name = "conv_gemm"

    def estimate(self, problem: Problem, target: Target) -> float:
        """A share of the peak that falls with few rows, and what is read, copied and scattered beside the products."""
        conv, geometry, tile = conv_parts(problem, target)
        backward = conv.kind is Kind.DGRAD
        spread = math.prod(geometry.stride) if backward else 1
        patches = geometry.groups * geometry.channels * geometry.taps * geometry.pixels // spread
        depth = geometry.channels * geometry.taps / spread
        share = (0.3 + 0.58 * min(1.0, geometry.rows / tile.rows)) * depth / (depth + 8)
        flops = 2 * patches * geometry.rows * _panel_waste(geometry.pixels, tile)
        seconds = compute_seconds(flops, tile.dtype, target, share) if patches else 0.0
        tasks = choose_tasks(geometry, tile, conv.kind, target.threads)
        beside = _packing_seconds(geometry, tile, patches * (1 if tasks.shared else tasks.rows), backward)
        if spread > 1:
            beside += geometry.groups * geometry.rows * geometry.pixels * SCATTER_SECONDS
        return START_SECONDS * spread + seconds + beside / max(target.threads, 1)

    def prepare(self, problem: Problem, target: Target) -> tuple[Preparation, ...]:
        """The filters in tiles, those of each phase of a stride (DGRAD) by themselves."""
        conv, geometry, tile = conv_parts(problem, target)
        if not _tiles_weights(geometry, conv.kind):
            return ()
        name = f"sc_conv_{conv.kind.value}_gemm_weights_{tile.suffix}"
        source = render_kernel("conv_gemm_weights.c.j2", function=name, kind=conv.kind.value, tile=tile)
        elements = geometry.groups * geometry.rows * geometry.channels * geometry.taps
        threads = target.threads if elements >= PARALLEL_FLOPS // 8 else 1
        kernel = Kernel(name, source, (*geometry.numbers, threads), TAP_BYTES * geometry.taps, bytes=2 * elements * tile.itemsize)
        return (Preparation(1, kernel, Operand.contiguous(tile.dtype, (elements,))),)

    def build(self, problem: Problem, target: Target) -> Kernel:
        """The kernel; its workspace holds the taps, and each thread's panels and runs."""
        conv, geometry, tile = conv_parts(problem, target)
        block = make_block(tile)
        name = conv_name(problem, f"gemm_{tile.suffix}")
        source = conv_source("conv_gemm.c.j2", name, problem, tile, block=block, task_panels=_TASK_PANELS,
                             first_cache=_FIRST_CACHE, weights_cache=_WEIGHTS_CACHE, few_tiles=_FEW_TILES)
        panels, pieces, scratch = _scratch(geometry, tile, block, conv.kind)
        taps = align(TAP_BYTES * geometry.taps)
        tasks = choose_tasks(geometry, tile, conv.kind, target.threads)
        shared = _shared_elements(geometry, tile, conv.kind) if tasks.shared else 0
        numbers = (*geometry.numbers, target.threads, panels, pieces, scratch, taps, int(conv.flops < PARALLEL_FLOPS),
                   int(_tiles_weights(geometry, conv.kind)), tasks.columns, tasks.rows, shared)
        return conv_kernel(problem, name, source, numbers, taps + scratch * target.threads + shared * tile.itemsize)


def _tiles_weights(geometry: Geometry, kind: Kind) -> bool:
    """Whether the main kernel gets the weights in tiles."""
    if geometry.groups * geometry.rows * geometry.channels * geometry.taps == 0:
        return False
    return kind is Kind.DGRAD or geometry.pixels >= _LEAST_PIXELS


class Tasks(NamedTuple):
    """Into how many parts panels and rows are cut, and whether all panels are packed first, for all parts of the rows."""

    columns: int
    rows: int
    shared: bool


@lru_cache(maxsize=1024)
def choose_tasks(geometry: Geometry, tile: GemmTile, kind: Kind, threads: int) -> Tasks:
    """How the work is cut.

    Each task packs its own panels (unless all are packed first) and reads its own weights, so few parts mean less work; but a
    thread that comes late, or gets the last task, keeps the others waiting for half a task on average.
    """
    phase = math.prod(-(-size // step) for size, step in zip(geometry.outside, geometry.stride, strict=True))
    pixels = geometry.batch * phase if kind is Kind.DGRAD else geometry.pixels
    panels, tiles = max(1, -(-pixels // tile.columns)), max(1, -(-geometry.rows // tile.rows))
    products = panels * tiles * tile.rows
    fewest = -(-panels // _TASK_PANELS)
    sharing = (False, True) if _shared_elements(geometry, tile, kind) else (False,)

    def cycles(tasks: Tasks) -> float:
        """For each step of depth, a thread's share left aside."""
        columns, rows, shared = tasks
        count = geometry.groups * columns * rows
        uneven = -(-count // threads) * threads / count - 1
        largest = -(-panels // columns) * -(-tiles // rows) * tile.rows
        waiting = products * uneven + largest * threads / 2 if threads > 1 else 0.0
        packing = (PACK_CYCLES + SHARED_CYCLES if shared else PACK_CYCLES * rows) * panels
        return waiting + WEIGHT_CYCLES * columns * tiles * tile.rows + packing

    most_columns, most_rows = min(panels, fewest + 16 * threads), max(1, min(tiles // 3, 16))
    return min((Tasks(columns, rows, shared) for columns in range(fewest, most_columns + 1) for rows in range(1, most_rows + 1)
                for shared in (sharing if rows > 1 else (False,))), key=cycles)


def _shared_elements(geometry: Geometry, tile: GemmTile, kind: Kind) -> int:
    """Elements of all panels of the largest phase; 0 where they are too many to be packed first."""
    steps = geometry.stride if kind is Kind.DGRAD else (1, 1, 1)
    taps = math.prod(-(-kernel // step) for kernel, step in zip(geometry.kernel, steps, strict=True))
    pixels = geometry.batch * math.prod(-(-size // step) for size, step in zip(geometry.outside, steps, strict=True))
    depth = taps * geometry.channels
    blocks = max(1, -(-depth // (make_block(tile).depth // 2)))
    elements = geometry.groups * -(-pixels // tile.columns) * (depth + blocks) * tile.columns
    return elements if elements * tile.itemsize <= _SHARED_BYTES else 0


def _scratch(geometry: Geometry, tile: GemmTile, block: GemmBlock, kind: Kind) -> tuple[int, int, int]:
    """Elements of a thread's panels, its pieces of rows, and the bytes of both."""
    panels = align(_TASK_PANELS * (block.depth + 1) * tile.columns * tile.itemsize)
    taps = min(geometry.taps, block.depth)
    columns = _TASK_PANELS * tile.columns
    width = max(1, geometry.outside[2] // (geometry.stride[2] if kind is Kind.DGRAD else 1))
    runs = 3 * (columns // width + 2) + 1  # a row of pixels: padding, image, padding
    pieces = taps * min(columns, runs + _TASK_PANELS)
    return panels // tile.itemsize, pieces, align(panels + pieces * RUN_BYTES + (taps + 1) * 8)


def _packing_seconds(geometry: Geometry, tile: GemmTile, patches: int, backward: bool) -> float:
    """Seconds of one thread for making the panels: the image's lines of the cache, once, and the elements copied."""
    reached = math.prod(1.0 if backward else min(1.0, kernel / stride)
                        for kernel, stride in zip(geometry.kernel[:2], geometry.stride[:2], strict=True))
    lines = geometry.batch * geometry.groups * geometry.channels * math.prod(geometry.inside) * reached * tile.itemsize / 64
    if reads_plainly(geometry):
        return lines * PLAIN_LINE_SECONDS
    width = max(1, geometry.outside[2] // (geometry.stride[2] if backward else 1))
    pieces = 0.6 + 0.7 * tile.columns / width  # a panel's row is made of more of them where rows of pixels are short
    return lines * LINE_SECONDS + patches * tile.itemsize / 4 * PATCH_SECONDS * pieces


def _panel_waste(pixels: int, tile: GemmTile) -> float:
    """How much longer the panels of these pixels take than if all were full; one of a single vector takes two thirds of that."""
    whole, rest = divmod(pixels, tile.columns)
    panels = whole + (0 if not rest else 2 / 3 if rest <= tile.lanes else 1)
    return max(1.0, panels * tile.columns / pixels) if pixels else 1.0
