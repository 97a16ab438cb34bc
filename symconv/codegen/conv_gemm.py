"""FPROP and DGRAD as an implicit matrix product: the image's patches are copied panel by panel, never as a whole."""
from __future__ import annotations

import math

from ..ops.spec import Kind
from ..target import Target
from .conv_common import (
    RUN_BYTES,
    TAP_BYTES,
    Geometry,
    PixelConvolution,
    align,
    conv_problem,
    epilogue_suffix,
    make_epilogue,
    make_geometry,
    minimal_bytes,
    reads_plainly,
    refuse_types,
    turning_seconds,
)
from .gemm_tile import PARALLEL_FLOPS, START_SECONDS, GemmBlock, GemmTile, compute_seconds, make_block, make_tile
from .kernel import Kernel, Problem
from .templates import render_kernel

_TASK_PANELS = 12

LINE_SECONDS, PLAIN_LINE_SECONDS = 28.0e-9, 5.0e-9
"""What a line of the image costs at its first use: read in short pieces, whose misses nothing hides, or in long ones."""

PATCH_SECONDS = 0.45e-9
"""What 4 bytes of a patch cost to copy. This and what is above: measured with 1x1, 3x3 and 7x7 filters, batch 1 and 8
(benchmarks/conv_choice.py)."""

SCATTER_SECONDS = 4.0e-9
"""What an element of the result costs more where a stride's phases are stored one after the other, measured the same way."""


class ConvGemm(PixelConvolution):
    """Filters times patches in register tiles; FPROP reads the filters where they are, DGRAD turns them first."""

    name = "conv_gemm"

    def refuse(self, problem: Problem, target: Target) -> str | None:
        """Only FPROP and DGRAD of float32 and float64."""
        if conv_problem(problem).kind is Kind.WGRAD:
            return "it makes images and responses, not filter gradients"
        return refuse_types(problem)

    def estimate(self, problem: Problem, target: Target) -> float:
        """A share of the peak that falls with few rows, and what is read, copied and scattered beside the products."""
        conv = conv_problem(problem)
        geometry, tile = make_geometry(conv), make_tile(problem.inputs[0].dtype, target)
        backward = conv.kind is Kind.DGRAD
        spread = math.prod(geometry.stride) if backward else 1
        patches = geometry.groups * geometry.channels * geometry.taps * geometry.pixels // spread
        depth = geometry.channels * geometry.taps / spread
        share = (0.3 + 0.5 * min(1.0, geometry.rows / tile.rows)) * depth / (depth + 8)
        seconds = compute_seconds(2 * patches * geometry.rows, tile.dtype, target, share) if patches else 0.0
        beside = _packing_seconds(geometry, tile, patches * _packed_times(geometry, tile, target), backward)
        if backward and not reads_plainly(geometry):
            beside += turning_seconds(geometry)
        if spread > 1:
            beside += geometry.groups * geometry.rows * geometry.pixels * SCATTER_SECONDS
        return START_SECONDS * spread + seconds + beside / max(target.threads, 1)

    def build(self, problem: Problem, target: Target) -> Kernel:
        """The kernel; its workspace holds the taps, turned filters (DGRAD), and each thread's panels and runs."""
        conv = conv_problem(problem)
        geometry, tile = make_geometry(conv), make_tile(problem.inputs[0].dtype, target)
        block = make_block(tile)
        name = f"sc_conv_{conv.kind.value}_gemm_{tile.suffix}{epilogue_suffix(problem)}"
        source = render_kernel("conv_gemm.c.j2", function=name, kind=conv.kind.value, tile=tile, block=block,
                               epilogue=make_epilogue(problem, tile), task_panels=_TASK_PANELS)
        numbers, workspace = _scratch_numbers(geometry, tile, block, conv.kind, target, conv.flops)
        return Kernel(name, source, (*geometry.numbers, *numbers), workspace, flops=conv.flops, bytes=minimal_bytes(problem))


def _scratch_numbers(geometry: Geometry, tile: GemmTile, block: GemmBlock, kind: Kind, target: Target,
                     flops: int) -> tuple[tuple[int, ...], int]:
    """The sizes behind the geometry, and the workspace's bytes."""
    panels = _TASK_PANELS * tile.columns * block.depth + tile.columns
    panels = align(panels * tile.itemsize) // tile.itemsize
    taps = min(geometry.taps, block.depth)
    runs = taps * tile.columns
    scratch = align(panels * tile.itemsize + runs * RUN_BYTES + (taps + 1) * 8)
    turned = geometry.groups * geometry.rows * geometry.channels * geometry.taps if kind is Kind.DGRAD else 0
    workspace = TAP_BYTES * geometry.taps + turned * tile.itemsize
    turned += (align(workspace) - workspace) // tile.itemsize
    numbers = (target.threads, panels, runs, scratch, turned, int(flops < PARALLEL_FLOPS))
    return numbers, align(workspace) + scratch * target.threads


def _packing_seconds(geometry: Geometry, tile: GemmTile, patches: int, backward: bool) -> float:
    """Seconds of one thread for making the panels: the image's lines of the cache, once, and the elements copied."""
    reached = math.prod(1.0 if backward else min(1.0, kernel / stride)
                        for kernel, stride in zip(geometry.kernel[:2], geometry.stride[:2], strict=True))
    lines = geometry.batch * geometry.groups * geometry.channels * math.prod(geometry.inside) * reached * tile.itemsize / 64
    if reads_plainly(geometry):
        return lines * PLAIN_LINE_SECONDS
    return lines * LINE_SECONDS + patches * tile.itemsize / 4 * PATCH_SECONDS


def _packed_times(geometry: Geometry, tile: GemmTile, target: Target) -> int:
    """How often patches are packed: with few pixels, threads share the rows, and each packs for itself."""
    columns = geometry.groups * -(-geometry.pixels // (4 * tile.columns))
    return max(1, min(4 * target.threads // max(columns, 1), -(-geometry.rows // (4 * tile.rows))))
