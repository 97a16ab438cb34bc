"""FPROP and DGRAD as an implicit matrix product: the image's patches are copied panel by panel, never as a whole."""
from __future__ import annotations

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
    refuse_types,
)
from .gemm_tile import COPY_BYTES, PARALLEL_FLOPS, START_SECONDS, GemmBlock, GemmTile, compute_seconds, make_block, make_tile
from .kernel import Kernel, Problem
from .templates import render_kernel

_TASK_PANELS = 12


class ConvGemm(PixelConvolution):
    """Filters times patches in register tiles; FPROP reads the filters where they are, DGRAD turns them first."""

    name = "conv_gemm"

    def refuse(self, problem: Problem, target: Target) -> str | None:
        """Only FPROP and DGRAD of float32 and float64."""
        if conv_problem(problem).kind is Kind.WGRAD:
            return "it makes images and responses, not filter gradients"
        return refuse_types(problem)

    def estimate(self, problem: Problem, target: Target) -> float:
        """A share of the peak that falls with few rows, and the copying of patches."""
        conv = conv_problem(problem)
        geometry, tile = make_geometry(conv), make_tile(problem.inputs[0].dtype, target)
        patches = geometry.groups * geometry.channels * geometry.taps * geometry.pixels
        spread = _stride_product(geometry) if conv.kind is Kind.DGRAD else 1
        few = min(1.0, geometry.rows / tile.rows)
        seconds = compute_seconds(2 * patches * geometry.rows / spread, tile.dtype, target, 0.3 + 0.5 * few)
        copying = patches / spread * tile.itemsize * 2 / COPY_BYTES / target.threads * _packed_times(geometry, tile, target)
        return START_SECONDS * spread + seconds + copying

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


def _packed_times(geometry: Geometry, tile: GemmTile, target: Target) -> int:
    """How often patches are packed: with few pixels, threads share the rows, and each packs for itself."""
    columns = geometry.groups * -(-geometry.pixels // (4 * tile.columns))
    return max(1, min(4 * target.threads // max(columns, 1), -(-geometry.rows // (4 * tile.rows))))


def _stride_product(geometry: Geometry) -> int:
    return geometry.stride[0] * geometry.stride[1] * geometry.stride[2]
