"""FPROP on blocks of channels (nChw8c): a register tile is two blocks of the result's channels times some pixels of a row.

Lanes are channels of the result, so the image is read as it is whatever stride and dilation, one value at a time, and nothing is
turned or scattered; this is the direct convolution of oneDNN's just-in-time kernels (Georganas et al., "Anatomy of
high-performance deep learning convolutions on SIMD architectures", 2018).
"""
from __future__ import annotations

from ..target import Target
from .blocked import BlockedConvolution, make_plan, moving_seconds, needs_copy, reads_blocks, refuse_layout
from .conv_common import (
    GEOMETRY_NUMBERS,
    Geometry,
    conv_problem,
    make_geometry,
    minimal_bytes,
)
from .conv_depthwise_blocked import ConvDepthwiseBlocked
from .conv_epilogue import epilogue_suffix, make_vector_epilogue
from .gemm_tile import PARALLEL_FLOPS, START_SECONDS, GemmTile, compute_seconds, make_tile
from .kernel import Kernel, Operand, Preparation, Problem
from .templates import render_kernel

SHARE, POINTWISE_SHARE = 0.8, 0.9
"""Shares of the peak at which full register tiles run, measured with 64 and more channels: with several taps, and 1x1."""


class ConvBlocked(BlockedConvolution):
    """Panels of packed weights times the image in place; where there is padding, times bands of the image copied with it."""

    name = "conv_blocked"

    def refuse(self, problem: Problem, target: Target) -> str | None:
        """Only FPROP into blocks of channels, from blocks or a plain image, of float32 and float64."""
        tile = make_tile(problem.inputs[0].dtype, target) if problem.inputs[0].dtype in ("float32", "float64") else None
        reason = refuse_layout(problem, tile or make_tile("float32", target))
        if reason is not None:
            return reason
        assert tile is not None
        geometry = make_geometry(conv_problem(problem))
        if geometry.rows % tile.lanes or (reads_blocks(problem) and geometry.channels % tile.lanes):
            return (f"{geometry.channels} channels to {geometry.rows} in a group do not divide into blocks of {tile.lanes}")
        return None

    def estimate(self, problem: Problem, target: Target) -> float:
        """Products at a share of the peak, tails of tiles counted, and what is read, copied and written beside them."""
        geometry, tile = make_geometry(conv_problem(problem)), make_tile(problem.inputs[0].dtype, target)
        flops = conv_problem(problem).flops
        threads = target.threads if flops >= PARALLEL_FLOPS else 1
        share = POINTWISE_SHARE if geometry.taps == 1 else SHARE
        seconds = compute_seconds(flops * tile_waste(geometry, tile), tile.dtype, target, share) * target.threads / threads
        moved = minimal_bytes(problem) + (problem.inputs[0].nbytes if needs_copy(geometry) else 0)
        return START_SECONDS + seconds + moving_seconds(moved, target)

    def prepare(self, problem: Problem, target: Target) -> tuple[Preparation, ...]:
        """The weights in panels."""
        geometry, tile = make_geometry(conv_problem(problem)), make_tile(problem.inputs[0].dtype, target)
        panels = geometry.groups * -(-geometry.rows // tile.columns)
        packed = Operand.contiguous(tile.dtype, (panels * tile.columns * geometry.channels * geometry.taps,))
        name = f"{self._name(problem, target)}_weights"
        return (Preparation(1, Kernel(name, self._render(problem, target), self._numbers(problem, target)), packed),)

    def build(self, problem: Problem, target: Target) -> Kernel:
        """The kernel; its workspace holds the taps' offsets, and each thread's sums and band of the image."""
        numbers = self._numbers(problem, target)
        tile = make_tile(problem.inputs[0].dtype, target)
        threads, offsets, scratch = numbers[GEOMETRY_NUMBERS], numbers[-3], numbers[-1]
        workspace = 8 * offsets + threads * scratch * tile.itemsize
        return Kernel(self._name(problem, target), self._render(problem, target), numbers, workspace,
                      flops=conv_problem(problem).flops, bytes=minimal_bytes(problem))

    def _numbers(self, problem: Problem, target: Target) -> tuple[int, ...]:
        conv = conv_problem(problem)
        geometry, tile = make_geometry(conv), make_tile(problem.inputs[0].dtype, target)
        threads = target.threads if conv.flops >= PARALLEL_FLOPS else 1
        return geometry.numbers + make_plan(geometry, tile, reads_blocks(problem), threads).numbers

    def _name(self, problem: Problem, target: Target) -> str:
        tile, stride = make_tile(problem.inputs[0].dtype, target), make_geometry(conv_problem(problem)).stride[2]
        first = "" if reads_blocks(problem) else "_plain_image"
        return f"sc_conv_fprop_blocked{first}_{tile.suffix}_u{stride}{epilogue_suffix(problem)}"

    def _render(self, problem: Problem, target: Target) -> str:
        """The source, with the kernel and the one that packs the weights."""
        tile = make_tile(problem.inputs[0].dtype, target)
        return render_kernel(
            "conv_blocked.c.j2", function=self._name(problem, target), kind="fprop", tile=tile, blocked=reads_blocks(problem),
            stride=make_geometry(conv_problem(problem)).stride[2], epilogue=make_vector_epilogue(problem, tile),
            filter_place="((group * s.rows + row) * s.channels + channel) * taps + from")


def tile_waste(geometry: Geometry, tile: GemmTile) -> float:
    """How much longer register tiles take than full ones would: rows that end in few pixels, an odd block of channels."""
    width = max(1, geometry.outside[2])
    tiles = -(-width // tile.rows)
    pixels = max(width, tiles * min(tile.rows, 4)) / width
    rows = max(1, geometry.rows)
    return pixels * (rows // tile.columns * tile.columns + (1.2 * tile.lanes if rows % tile.columns else 0)) / rows


CONV_BLOCKED = (ConvBlocked(), ConvDepthwiseBlocked())
