"""FPROP and DGRAD directly, with channels of the result in the lanes of vectors, of plain tensors.

Pixels in the lanes (conv_direct) are taken apart by strides, and fill their vectors badly where rows are short; with channels in
the lanes, as in conv_blocked, nothing depends on the pixels.  Here image and result stay plain: bands of the image, which are
copied anyway where there is padding, are turned into blocks of channels on the way, and lines of the result are turned back while
they are in the first cache.  DGRAD takes each phase of a stride as a convolution of its own over the same band, so that no zero
is multiplied, and stores whole lines.
"""
from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache

from ..ops.spec import Kind
from ..target import Target
from .blocked import cut_for_threads, cut_regions, reach
from .conv_common import (
    GEOMETRY_NUMBERS,
    TAP_BYTES,
    Geometry,
    PixelConvolution,
    Triple,
    align,
    conv_kernel,
    conv_name,
    conv_parts,
    conv_problem,
    conv_source,
    minimal_bytes,
)
from .gemm_tile import PARALLEL_FLOPS, START_SECONDS, GemmTile, compute_seconds, cycle_seconds
from .kernel import Kernel, Operand, Preparation, Problem
from .winograd_plan import make_turn

STAGE_BYTES = 256
"""Bytes of the struct Stage of conv_turned.c.j2, at most."""

SHARE, TILE_DEPTH, PLAIN_TILE_DEPTH = 0.82, 36, 6
"""Share of the peak at which full register tiles run, measured with 64 and more channels, and what a tile takes beside its sums, in
terms of them, with bands that are turned and with plain ones."""

_REGION_BYTES = 200 * 1024
"""What a task's band may take of the second cache."""

_PASS_BYTES = 40 * 1024
"""What a panel's weights of one pass may take: more than the first cache has, but sums that are put aside fewer times were worth
more (3 to 6 % with 64 to 256 channels)."""

_TASKS = 4
"""Tasks for each thread that there should be at least."""

_MOST_BYTES = 4 * 1024 * 1024
"""What a thread's band and sums may take at most: more than the second cache is still right, but slow."""

TURN_CYCLES = 20.0
"""Cycles to turn a square of vectors: of the image for each task, of the result once."""


class ConvTurned(PixelConvolution):
    """Packed filters times bands of the image; lanes are channels of the result."""

    name = "conv_turned"

    def refuse(self, problem: Problem, target: Target) -> str | None:
        """Only FPROP and DGRAD of float32 and float64, with enough channels in a group, and bands that fit a few caches."""
        reason = super().refuse(problem, target)
        if reason is not None:
            return reason
        conv, geometry, tile = conv_parts(problem, target)
        if geometry.groups > 1 and geometry.rows < tile.lanes // 2:
            return f"{geometry.rows} channels of the result in a group leave most of {tile.lanes} lanes empty"
        nbytes = make_plan(geometry, conv.kind, tile, 1).scratch_elements * tile.itemsize
        return f"a line of pixels needs {nbytes} bytes of the image: more than {_MOST_BYTES}" if nbytes > _MOST_BYTES else None

    def estimate(self, problem: Problem, target: Target) -> float:
        """Products at a share of the peak, tails of tiles counted, and what is turned beside them."""
        conv, geometry, tile = conv_parts(problem, target)
        threads = max(1, target.threads) if conv.flops >= PARALLEL_FLOPS else 1
        plan = make_plan(geometry, conv.kind, tile, threads)
        depth = geometry.channels * geometry.taps / math.prod(_spread(geometry, conv.kind))
        share = SHARE * depth / (depth + (TILE_DEPTH if _turns(geometry, tile) else PLAIN_TILE_DEPTH))
        flops = conv.flops * _waste(geometry, conv.kind, tile)
        seconds = compute_seconds(flops, tile.dtype, target, share) * max(1, target.threads) / threads
        band = plan.band_block * _blocks(geometry, tile) * _unit(geometry, tile) / tile.lanes ** 2
        stored = geometry.groups * -(-geometry.rows // tile.lanes) * geometry.pixels / tile.lanes
        turning = cycle_seconds(TURN_CYCLES * (_tasks(geometry, conv.kind, plan) * band + stored), target, threads)
        return START_SECONDS + seconds + turning + target.copy_seconds(minimal_bytes(problem), threads, minimal_bytes(problem)) / 2

    def prepare(self, problem: Problem, target: Target) -> tuple[Preparation, ...]:
        """The weights in panels."""
        _, geometry, tile = conv_parts(problem, target)
        elements = _panels(geometry, tile) * _depth(geometry, tile) * tile.columns
        name = self._name(problem, target)
        kernel = Kernel(f"{name}_weights", self._render(problem, target), self._numbers(problem, target),
                        _head_bytes(geometry, conv_problem(problem).kind, tile), bytes=2 * elements * tile.itemsize)
        return (Preparation(1, kernel, Operand.contiguous(tile.dtype, (elements,))),)

    def build(self, problem: Problem, target: Target) -> Kernel:
        """The kernel; its workspace holds the phases, the taps, and each thread's sums and band of the image."""
        conv, geometry, tile = conv_parts(problem, target)
        numbers = self._numbers(problem, target)
        head = _head_bytes(geometry, conv.kind, tile)
        workspace = head + numbers[GEOMETRY_NUMBERS] * numbers[-2] * tile.itemsize
        return conv_kernel(problem, self._name(problem, target), self._render(problem, target), numbers, workspace)

    def _numbers(self, problem: Problem, target: Target) -> tuple[int, ...]:
        conv, geometry, tile = conv_parts(problem, target)
        threads = max(1, target.threads) if conv.flops >= PARALLEL_FLOPS else 1
        plan = make_plan(geometry, conv.kind, tile, threads)
        return (*geometry.numbers, *plan.numbers, _head_bytes(geometry, conv.kind, tile))

    def _name(self, problem: Problem, target: Target) -> str:
        conv, geometry, tile = conv_parts(problem, target)
        form = "" if _turns(geometry, tile) else "_plain_bands"
        return conv_name(problem, f"turned{form}_{tile.suffix}_u{_steps(geometry, conv.kind)[2]}")

    def _render(self, problem: Problem, target: Target) -> str:
        """The source, with the kernel and the one that packs the weights."""
        conv, geometry, tile = conv_parts(problem, target)
        return conv_source("conv_turned.c.j2", self._name(problem, target), problem, tile, turned=_turns(geometry, tile),
                           step=_steps(geometry, conv.kind)[2], turn=make_turn(tile.lanes), stage_bytes=STAGE_BYTES,
                           head_size=GEOMETRY_NUMBERS + PLAN_NUMBERS)


PLAN_NUMBERS = 23
"""Numbers of the struct Plan."""


@dataclass(frozen=True, slots=True)
class Reads:
    """What a band holds along one axis: places from `low` of the first pixel's on, `span` of them for the taps, every `skip`-th;
    neighbouring pixels are `step` places apart."""

    low: int
    span: int
    skip: int
    step: int


@dataclass(frozen=True, slots=True)
class TurnedPlan:
    """The numbers behind the geometry: the struct Plan of conv_turned.c.j2."""

    threads: int
    line_parts: int
    column_parts: int
    row_parts: int
    pass_blocks: int
    reads: tuple[Reads, Reads, Reads]
    band_line: int
    band_slice: int
    band_block: int
    sum_line: int
    sum_elements: int
    scratch_elements: int

    @property
    def numbers(self) -> tuple[int, ...]:
        """In the order of the struct."""
        along = tuple(getattr(axis, name) for name in ("low", "span", "skip", "step") for axis in self.reads)
        return (self.threads, self.line_parts, self.column_parts, self.row_parts, self.pass_blocks, *along, self.band_line,
                self.band_slice, self.band_block, self.sum_line, self.sum_elements, self.scratch_elements)


@lru_cache(maxsize=1024)
def make_plan(geometry: Geometry, kind: Kind, tile: GemmTile, threads: int) -> TurnedPlan:
    """How the work is cut: as conv_blocked's, over the pixels of one phase."""
    reads, counts, spread = _reads(geometry, kind), _counts(geometry, kind), _spread(geometry, kind)
    pixels = _as_read(geometry, reads, counts)
    width, blocks, panels = _unit(geometry, tile), _blocks(geometry, tile), max(1, -(-geometry.rows // tile.columns))
    granule = 4 * tile.rows
    cut = cut_regions(pixels, max(1, blocks * width) * tile.itemsize, _REGION_BYTES, granule)
    if threads > 1:
        weights_first = geometry.rows * geometry.taps > math.prod(geometry.inside)
        cut = cut_for_threads(pixels, cut, _TASKS * threads, panels, weights_first, granule)
    lines, columns = (-(-max(1, size) // parts) for size, parts in zip(counts[1:], (cut.lines, cut.columns), strict=True))
    band_line = reach(pixels, 2, columns)
    band_slice = band_line * reach(pixels, 1, lines)
    band_block = band_slice * reads[0].span
    taps = math.prod(-(-kernel // step) for kernel, step in zip(geometry.kernel, spread, strict=True))
    terms = taps * (1 if _turns(geometry, tile) else geometry.channels)
    pass_blocks = max(1, _PASS_BYTES // (max(1, terms) * width * tile.columns * tile.itemsize))
    sum_line = (columns * spread[2] + tile.lanes) * tile.columns
    kept = lines * spread[0] * spread[1] if blocks > pass_blocks else 1
    sums = align(kept * sum_line * tile.itemsize) // tile.itemsize
    scratch = align((sums + band_block * blocks * width) * tile.itemsize + tile.vector_bytes) // tile.itemsize
    return TurnedPlan(threads, cut.lines, cut.columns, cut.rows, pass_blocks, reads, band_line, band_slice, band_block, sum_line,
                      sums, scratch)


def _reads(geometry: Geometry, kind: Kind) -> tuple[Reads, Reads, Reads]:
    a, b, c = (_reads_along(geometry, kind, axis) for axis in range(3))
    return a, b, c


def _reads_along(geometry: Geometry, kind: Kind, axis: int) -> Reads:
    size, stride, dilation, pad = (of[axis] for of in (geometry.kernel, geometry.stride, geometry.dilation, geometry.pad))
    if kind is Kind.DGRAD:
        places = [phase + pad - tap * dilation for phase in range(stride) for tap in range(size)]
        offsets, step = [place // stride for place in places if place % stride == 0] or [0], 1
    else:
        offsets, step = [tap * dilation - pad for tap in range(size)], stride
    span = max(offsets) - min(offsets) + 1
    skip = step if span == 1 else 1
    return Reads(min(offsets), span, skip, step // skip)


def _as_read(geometry: Geometry, reads: tuple[Reads, Reads, Reads], counts: Triple) -> Geometry:
    """A convolution that reads the band as this one does: strides are steps in it, kernels are spans."""
    a, b, c = reads
    return replace(geometry, outside=counts, kernel=(a.span, b.span, c.span), stride=(a.step, b.step, c.step), dilation=(1, 1, 1))


def _spread(geometry: Geometry, kind: Kind) -> Triple:
    return geometry.stride if kind is Kind.DGRAD else (1, 1, 1)


def _counts(geometry: Geometry, kind: Kind) -> Triple:
    """Pixels along each axis, of the first phase."""
    a, b, c = (-(-size // spread) for size, spread in zip(geometry.outside, _spread(geometry, kind), strict=True))
    return a, b, c


def _steps(geometry: Geometry, kind: Kind) -> Triple:
    """Places of the band from a pixel to the next."""
    a, b, c = _reads(geometry, kind)
    return a.step, b.step, c.step


def _turns(geometry: Geometry, tile: GemmTile) -> bool:
    """Whether bands are turned into blocks of channels: few channels would leave most of a block empty."""
    return geometry.channels > tile.lanes // 2


def _unit(geometry: Geometry, tile: GemmTile) -> int:
    """Channels of a block of the band."""
    return tile.lanes if _turns(geometry, tile) else max(1, geometry.channels)


def _blocks(geometry: Geometry, tile: GemmTile) -> int:
    return -(-geometry.channels // _unit(geometry, tile))


def _depth(geometry: Geometry, tile: GemmTile) -> int:
    """Rows of a panel of packed weights."""
    return _blocks(geometry, tile) * _unit(geometry, tile) * geometry.taps


def _panels(geometry: Geometry, tile: GemmTile) -> int:
    return geometry.groups * -(-geometry.rows // tile.columns)


def _head_bytes(geometry: Geometry, kind: Kind, tile: GemmTile) -> int:
    """The part of the workspace that all threads share: phases, taps, and their distances."""
    channels = 1 if _turns(geometry, tile) else max(1, geometry.channels)
    return align(STAGE_BYTES * math.prod(_spread(geometry, kind)) + (TAP_BYTES + 8 * channels) * geometry.taps)


def _tasks(geometry: Geometry, kind: Kind, plan: TurnedPlan) -> int:
    slices = geometry.batch * geometry.groups * _counts(geometry, kind)[0]
    return slices * plan.line_parts * plan.column_parts * plan.row_parts


def _waste(geometry: Geometry, kind: Kind, tile: GemmTile) -> float:
    """How much longer register tiles take than full ones would: rows that end in few pixels, odd blocks of channels."""
    width = max(1, _counts(geometry, kind)[2])
    tiles = -(-width // tile.rows)
    pixels = max(width, tiles * min(tile.rows, 4)) / width
    rows = max(1, geometry.rows)
    rest = rows % tile.columns
    filled = rows - rest + (0 if not rest else tile.columns if rest > tile.lanes else 1.2 * tile.lanes)
    channels = max(1, geometry.channels)
    return pixels * filled / rows * _blocks(geometry, tile) * _unit(geometry, tile) / channels
