"""FPROP and DGRAD directly: padded bands of image rows are read in place by register tiles. Depthwise and small groups too."""
from __future__ import annotations

from dataclasses import dataclass

from ..ops.spec import Kind
from ..target import Target
from .conv_common import (
    TAP_BYTES,
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

WORK_BYTES = 1024
"""Bytes of the struct Work of conv_direct.c.j2, at most."""

_DEPTH = 320
"""Products summed in one pass: 6 rows of filters and a band's columns then share the first cache."""

_BAND_BYTES = 128 * 1024
"""What a thread's band may fill of the second cache."""

_TASKS = 8
"""Tasks of pixels that there should be at least, while bands of several rows allow it."""

_COLUMNS = 256
"""Pixels of a row that are worked on at once."""


ADD_SECONDS = 1.2e-9
"""What an element of the result costs to add to one by one, in each pass but the first, where lines are no whole vectors."""


@dataclass(frozen=True, slots=True)
class BandPlan:
    """Rows of pixels, pixels of a row and channels that a thread works on at once, and the elements copied for them."""

    rows: int
    columns: int
    channels: int
    elements: int


class ConvDirect(PixelConvolution):
    """Bands of the image, copied once with their padding; filters as they are (DGRAD: turned first)."""

    name = "conv_direct"

    def refuse(self, problem: Problem, target: Target) -> str | None:
        """Only FPROP and DGRAD of float32 and float64, and taps that reach less far than a band may be long."""
        reason = super().refuse(problem, target)
        if reason is None:
            conv, geometry, tile = conv_parts(problem, target)
            nbytes = plan_band(geometry, conv.kind, tile).elements * tile.itemsize
            if nbytes > 16 * _BAND_BYTES:
                reason = f"one row of pixels needs {nbytes} bytes of the image"
        return reason

    def estimate(self, problem: Problem, target: Target) -> float:
        """A share of the peak, less where rows of pixels fill their vectors badly, and the copying of bands."""
        conv, geometry, tile = conv_parts(problem, target)
        plan, phases = plan_band(geometry, conv.kind, tile), _phases(geometry, conv.kind)
        counts = _counts(geometry, conv.kind)
        vectors = -(-counts[2] // tile.lanes) * tile.lanes
        products = geometry.batch * geometry.groups * geometry.rows * geometry.channels * geometry.taps
        flops = 2 * products * counts[0] * counts[1] * vectors
        bands = geometry.batch * geometry.groups * counts[0] * -(-counts[1] // plan.rows) * -(-counts[2] // plan.columns)
        passes = -(-geometry.channels // max(1, plan.channels))
        copied = phases * bands * plan.elements * passes * 2 * tile.itemsize
        few = 0.44 + 0.1 * min(geometry.rows, 3)
        depth = geometry.channels * geometry.taps / phases
        share = few * depth / (depth + 12)
        seconds = compute_seconds(flops, tile.dtype, target, share) + target.copy_seconds(copied)
        if counts[2] % tile.lanes:
            seconds += (passes - 1) * geometry.groups * geometry.rows * geometry.pixels * ADD_SECONDS / target.threads
        turning = turning_seconds(geometry) / target.threads if conv.kind is Kind.DGRAD else 0.0
        return START_SECONDS * phases + seconds + turning

    def build(self, problem: Problem, target: Target) -> Kernel:
        """The kernel; its workspace holds the taps, their distances, turned filters (DGRAD) and a band for each thread."""
        conv, geometry, tile = conv_parts(problem, target)
        shapes = tile_shapes(tile)
        name = conv_name(problem, f"direct_{tile.suffix}")
        source = conv_source("conv_direct.c.j2", name, problem, tile, shapes=shapes, work_bytes=WORK_BYTES,
                             largest=max(rows * vectors for rows, vectors in enumerate(shapes, 1)))
        plan = plan_band(geometry, conv.kind, tile)
        turned = geometry.groups * geometry.rows * geometry.channels * geometry.taps if conv.kind is Kind.DGRAD else 0
        head = WORK_BYTES * _phases(geometry, conv.kind) + (TAP_BYTES + 16 * plan.channels) * geometry.taps + turned * tile.itemsize
        turned += (align(head) - head) // tile.itemsize
        elements = align(plan.elements * tile.itemsize) // tile.itemsize
        numbers = (*geometry.numbers, target.threads, plan.rows, plan.columns, plan.channels, elements, turned,
                   int(conv.flops < PARALLEL_FLOPS), choose_tile_rows(geometry, conv.kind, tile, plan))
        return conv_kernel(problem, name, source, numbers, align(head) + elements * tile.itemsize * target.threads)


def tile_shapes(tile: GemmTile) -> tuple[int, ...]:
    """For 1, 2, … rows of a register tile its most vectors: 12 sums where there are 16 registers, 24 where there are 32."""
    sums = 24 if tile.registers >= 32 else 12
    return tuple(min(8, sums // rows) for rows in range(1, 7))


def tile_cycles(rows: int, vectors: int) -> float:
    """Cycles of one step of a register tile: multiply-adds (two a cycle), loads (three), their latency, and a little for each
    tile, whose sums are stored."""
    return max(rows * vectors / 2, (rows + vectors + 1) / 3, 4) + 0.3


def choose_tile_rows(geometry: Geometry, kind: Kind, tile: GemmTile, plan: BandPlan) -> int:
    """Rows of a register tile for which rows and vectors divide with the least waste."""
    shapes = tile_shapes(tile)
    columns = min(_counts(geometry, kind)[2], plan.columns)
    vectors = plan.rows if columns <= tile.lanes else -(-columns // tile.lanes)

    def cycles(most_rows: int) -> float:
        tiles = max(1, -(-geometry.rows // most_rows))
        rows = -(-geometry.rows // tiles)
        parts = -(-vectors // shapes[max(rows, 1) - 1])
        return sum(tile_cycles(part_size(geometry.rows, tiles, t), part_size(vectors, parts, p))
                   for t in (0, tiles - 1) for p in (0, parts - 1)) / 4 * tiles * parts

    return min(range(1, len(shapes) + 1), key=lambda rows: (cycles(rows), -rows))


def part_size(size: int, parts: int, index: int) -> int:
    """Size of one of nearly equal parts; the first ones are the longer ones."""
    return size // parts + (index < size % parts)


def plan_band(geometry: Geometry, kind: Kind, tile: GemmTile, channels: int = 0) -> BandPlan:
    """Bands that fit the second cache, and are many enough for several threads; of `channels` channels, or as many as suit."""
    counts, step, span = _counts(geometry, kind), _steps(geometry, kind), _spans(geometry, kind)
    columns = -(-max(counts[2], 1) // max(1, -(-counts[2] // _COLUMNS)))
    channels = channels or _channels_at_once(geometry, kind)
    length = -(-columns // tile.lanes) * tile.lanes + (span[2] - 1) // step[2]

    def elements(rows: int) -> int:
        return channels * span[0] * ((rows - 1) * step[1] + span[1]) * length * step[2]

    others = geometry.batch * geometry.groups * counts[0] * -(-counts[2] // columns)
    rows = max(1, counts[1])
    while rows > 1 and (elements(rows) * tile.itemsize > _BAND_BYTES or (rows > 4 and others * -(-counts[1] // rows) < _TASKS)):
        rows = (rows + 1) // 2
    return BandPlan(rows, columns, channels, elements(rows))


def _channels_at_once(geometry: Geometry, kind: Kind) -> int:
    most = max(1, min(geometry.channels, _DEPTH // max(1, geometry.taps // _phases(geometry, kind))))
    passes = max(1, -(-geometry.channels // most))
    return max(1, -(-geometry.channels // passes))


def _phases(geometry: Geometry, kind: Kind) -> int:
    return geometry.stride[0] * geometry.stride[1] * geometry.stride[2] if kind is Kind.DGRAD else 1


def _counts(geometry: Geometry, kind: Kind) -> Triple:
    """Pixels along each axis, of the largest phase."""
    a, b, c = (-(-size // stride) if kind is Kind.DGRAD else size
               for size, stride in zip(geometry.outside, geometry.stride, strict=True))
    return a, b, c


def _steps(geometry: Geometry, kind: Kind) -> Triple:
    return (1, 1, 1) if kind is Kind.DGRAD else geometry.stride


def _spans(geometry: Geometry, kind: Kind) -> Triple:
    """How many image elements the taps of one pixel reach over, at most."""
    a, b, c = ((kernel - 1) * dilation // (stride if kind is Kind.DGRAD else 1) + 1
               for kernel, dilation, stride in zip(geometry.kernel, geometry.dilation, geometry.stride, strict=True))
    return a, b, c
