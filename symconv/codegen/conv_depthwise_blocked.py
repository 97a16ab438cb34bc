"""Depthwise FPROP on blocks of channels: lanes are channels, so every stride and dilation is read in whole vectors."""
from __future__ import annotations

from ..target import Target
from .blocked import BlockedConvolution, BlockedPlan, moving_seconds, needs_copy, reach, refuse_layout, region_pixels
from .conv_common import (
    GEOMETRY_NUMBERS,
    Geometry,
    align,
    conv_problem,
    make_geometry,
    minimal_bytes,
)
from .conv_epilogue import epilogue_suffix, make_vector_epilogue
from .gemm_tile import PARALLEL_FLOPS, START_SECONDS, GemmTile, compute_seconds, make_tile
from .kernel import Kernel, Operand, Preparation, Problem
from .templates import render_kernel

_BAND_BYTES = 24 * 1024
"""What a band of the image may take of the first cache."""

_MOST_TAPS = 400
"""Elements of a kernel whose rows are written out."""

_TASKS = 8
"""Tasks for each thread that there should be at least."""

SHARE = 0.5
"""Share of the peak that products and the copying of bands reach together, measured with 3x3 filters at 14x14 to 56x56 pixels."""


class ConvDepthwiseBlocked(BlockedConvolution):
    """Each channel with one filter of its own."""

    name = "conv_depthwise_blocked"

    def refuse(self, problem: Problem, target: Target) -> str | None:
        """Only one channel and one filter in a group, blocks on both sides."""
        dtype = problem.inputs[0].dtype
        tile = make_tile(dtype if dtype in ("float32", "float64") else "float32", target)
        reason = refuse_layout(problem, tile)
        if reason is not None:
            return reason
        geometry = make_geometry(conv_problem(problem))
        if (geometry.rows, geometry.channels) != (1, 1) or geometry.groups % tile.lanes or problem.op.layout.x == 0:  # type: ignore[attr-defined]
            return f"it takes one channel and one filter in a group, and blocks of {tile.lanes} channels on both sides"
        if geometry.taps > _MOST_TAPS:
            return f"it writes out at most {_MOST_TAPS} taps, and the kernel has {geometry.taps}"
        return None

    def estimate(self, problem: Problem, target: Target) -> float:
        """Products at a share of the peak, and what is read and written."""
        conv, tile = conv_problem(problem), make_tile(problem.inputs[0].dtype, target)
        threads = target.threads if conv.flops >= PARALLEL_FLOPS else 1
        seconds = compute_seconds(conv.flops, tile.dtype, target, SHARE) * target.threads / threads
        return START_SECONDS + seconds + moving_seconds(minimal_bytes(problem), target)

    def prepare(self, problem: Problem, target: Target) -> tuple[Preparation, ...]:
        """The filters, tap by tap."""
        geometry, dtype = make_geometry(conv_problem(problem)), problem.inputs[0].dtype
        kernel = Kernel(f"{self._name(problem, target)}_weights", self._render(problem, target), self._numbers(problem, target))
        return (Preparation(1, kernel, Operand.contiguous(dtype, (geometry.groups * geometry.taps,))),)

    def build(self, problem: Problem, target: Target) -> Kernel:
        """The kernel; its workspace holds each thread's band."""
        numbers, tile = self._numbers(problem, target), make_tile(problem.inputs[0].dtype, target)
        workspace = numbers[GEOMETRY_NUMBERS] * numbers[-1] * tile.itemsize
        return Kernel(self._name(problem, target), self._render(problem, target), numbers, workspace,
                      flops=conv_problem(problem).flops, bytes=minimal_bytes(problem))

    def _numbers(self, problem: Problem, target: Target) -> tuple[int, ...]:
        conv = conv_problem(problem)
        geometry, tile = make_geometry(conv), make_tile(problem.inputs[0].dtype, target)
        threads = target.threads if conv.flops >= PARALLEL_FLOPS else 1
        return geometry.numbers + _plan(geometry, tile, threads).numbers

    def _name(self, problem: Problem, target: Target) -> str:
        geometry, tile = make_geometry(conv_problem(problem)), make_tile(problem.inputs[0].dtype, target)
        axes = {"r": geometry.kernel, "u": geometry.stride, "l": geometry.dilation}
        words = "_".join(letter + "x".join(map(str, numbers)) for letter, numbers in axes.items())
        return f"sc_conv_fprop_depthwise_blocked_{tile.suffix}_{words}{epilogue_suffix(problem)}"

    def _render(self, problem: Problem, target: Target) -> str:
        geometry, tile = make_geometry(conv_problem(problem)), make_tile(problem.inputs[0].dtype, target)
        counts = (tile.rows, 4, 2, 1) if tile.rows > 4 else (4, 2, 1)
        return render_kernel("conv_depthwise_blocked.c.j2", function=self._name(problem, target), kind="fprop", tile=tile,
                             kernel=geometry.kernel, stride=geometry.stride, dilation=geometry.dilation, counts=counts,
                             pixels=max(counts), epilogue=make_vector_epilogue(problem, tile))


def _plan(geometry: Geometry, tile: GemmTile, threads: int) -> BlockedPlan:
    """Lines in bands that fit the first cache, and in parts for the threads."""
    planes = max(1, geometry.batch * geometry.groups // tile.lanes * geometry.outside[0])
    parts = max(1, min(geometry.outside[1] // 4, -(-_TASKS * threads // planes))) if threads > 1 else 1
    copies, columns = needs_copy(geometry), geometry.outside[2]
    lines = max(1, -(-geometry.outside[1] // parts))
    while lines > 1 and region_pixels(geometry, lines, columns) * tile.vector_bytes > _BAND_BYTES:
        lines -= 1
    line = reach(geometry, 2, columns) if copies else geometry.inside[2]
    slice_pixels = line * (reach(geometry, 1, lines) if copies else geometry.inside[1])
    if not copies:
        slice_pixels *= geometry.dilation[0]
    band = align(geometry.kernel[0] * slice_pixels * tile.vector_bytes) // tile.itemsize if copies else 0
    return BlockedPlan(threads, parts, 1, 1, copies, line, slice_pixels, 0, lines, 0, 0, band)
