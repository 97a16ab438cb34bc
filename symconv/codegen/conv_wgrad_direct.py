"""WGRAD with few filters and channels in a group (depthwise, first layers): lanes are pixels, nothing is transposed."""
from __future__ import annotations

from ..ops.spec import Kind
from ..target import Target
from .conv_common import (
    TAP_BYTES,
    FilterGradient,
    Geometry,
    align,
    conv_kernel,
    conv_name,
    conv_parts,
    conv_source,
)
from .conv_direct import BandPlan, plan_band
from .gemm_tile import PARALLEL_FLOPS, START_SECONDS, GemmTile, compute_seconds
from .kernel import Kernel, Problem

_SUMS_BYTES = 384 * 1024
"""What a group's sums, a vector for each element of its filters, may fill."""

_BAND_BYTES = 1024 * 1024
_TASKS = 16


class ConvWgradDirect(FilterGradient):
    """Register tiles of filters by taps, summed over rows of pixels."""

    name = "conv_wgrad_direct"

    def refuse(self, problem: Problem, target: Target) -> str | None:
        """Only WGRAD of float32 and float64 with few filters and channels in a group."""
        reason = super().refuse(problem, target)
        if reason is None:
            conv, geometry, tile = conv_parts(problem, target)
            sums = _sums(geometry, tile) * tile.itemsize
            if sums > _SUMS_BYTES:
                return f"the sums of a group's filters take {sums} bytes, a vector each: more than {_SUMS_BYTES}"
            nbytes = plan_band(geometry, conv.kind, tile, geometry.channels).elements * tile.itemsize
            if nbytes > _BAND_BYTES:
                return f"one row of pixels needs {nbytes} bytes of the image"
        return reason

    def estimate(self, problem: Problem, target: Target) -> float:
        """A share of the peak, less where rows of pixels fill their vectors badly, and the copying of bands."""
        _, geometry, tile = conv_parts(problem, target)
        plan = plan_band(geometry, Kind.WGRAD, tile, geometry.channels)
        out = geometry.outside
        vectors = -(-out[2] // tile.lanes) * tile.lanes
        flops = 2 * geometry.batch * out[0] * out[1] * vectors * geometry.groups * geometry.rows * geometry.channels * geometry.taps
        bands = geometry.batch * geometry.groups * out[0] * -(-out[1] // plan.rows) * -(-out[2] // plan.columns)
        copied = bands * 2 * tile.itemsize * (plan.elements + geometry.rows * plan.rows * plan.columns)
        share = 0.45 if geometry.rows == 1 else 0.55
        return START_SECONDS + compute_seconds(flops, tile.dtype, target, share) + target.copy_seconds(copied)

    def build(self, problem: Problem, target: Target) -> Kernel:
        """The kernel; its workspace holds taps, distances, the sums of every slice, and each thread's band, rows and sums."""
        conv, geometry, tile = conv_parts(problem, target)
        name = conv_name(problem, f"direct_{tile.suffix}")
        source = conv_source("conv_wgrad_direct.c.j2", name, problem, tile, shapes=_tile_shapes(tile))
        plan = plan_band(geometry, conv.kind, tile, geometry.channels)
        width = -(-plan.columns // tile.lanes) * tile.lanes
        scratch = plan.elements + geometry.rows * plan.rows * width + _sums(geometry, tile)
        scratch = align(scratch * tile.itemsize) // tile.itemsize
        slices = _count_slices(geometry, plan)
        depth = geometry.channels * geometry.taps
        partial = slices * geometry.groups * geometry.rows * depth
        workspace = TAP_BYTES * geometry.taps + 8 * depth + (partial + scratch * target.threads) * tile.itemsize
        numbers = (*geometry.numbers, target.threads, slices, plan.rows, plan.columns, scratch, plan.elements,
                   int(conv.flops < PARALLEL_FLOPS))
        return conv_kernel(problem, name, source, numbers, workspace)


def _sums(geometry: Geometry, tile: GemmTile) -> int:
    return geometry.rows * geometry.channels * geometry.taps * tile.lanes


def _tile_shapes(tile: GemmTile) -> tuple[int, ...]:
    """For 1, 2, … filters of a register tile its most taps: as many sums as the registers, and the pointers to rows, allow."""
    return (9, 9, 7, 6) if tile.registers >= 32 else (9, 5, 4)


def _count_slices(geometry: Geometry, plan: BandPlan) -> int:
    """Into how many slices the bands are cut; it depends on sizes only, so that the bits do not depend on the threads."""
    out = geometry.outside
    units = geometry.batch * out[0] * -(-out[1] // plan.rows) * -(-out[2] // max(plan.columns, 1))
    return max(1, min(-(-_TASKS // max(geometry.groups, 1)), units))
