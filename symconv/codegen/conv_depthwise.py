"""Depthwise convolution (one input channel in a group) in one and two dimensions: lanes along the width, images read in place.

Vectors are loaded from the image where the taps want them; those that reach into the padding are masked, and only lines beside
which there is no memory to read are copied.  An element is loaded once for all rows of a block and all taps that use it.  The
taps are written out in the C, so a source is for one kernel, stride, dilation and padding; batch, channels and sizes are run-time
numbers.
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from ..ops.convolution import Conv
from ..ops.epilogue import CHANNEL
from ..ops.spec import Kind
from ..target import Target
from .conv_common import (
    FilterGradient,
    Geometry,
    PixelConvolution,
    align,
    conv_kernel,
    conv_name,
    conv_parts,
    conv_problem,
    conv_source,
    make_geometry,
    minimal_bytes,
)
from .gemm_tile import PARALLEL_FLOPS, START_SECONDS, GemmTile, compute_seconds
from .implementation import Implementation
from .kernel import Kernel, Problem

_MOST_TAPS = 49
"""Taps that are written out, at most."""

_TASK_PRODUCTS = 32 * 1024
"""Products that a task should have at least, while tasks are many enough."""

_TASKS = 16
"""Tasks for each thread, about: planes that lie one behind the other are read and written in one go."""

_SUMS = 10
"""Sums of filter elements held in registers at once, at most: of 16 registers some hold image and response."""

_KEPT_SUMS = 288
"""Sums of filter elements that a task keeps in the first cache, as vectors: those of 32 filters of 3x3."""

_BLOCK_SUMS = 4
"""Vectors of the result that a block makes at once (twice as many where they are of several phases): their sums, a 3x3 filter and
a vector of the image fill 16 registers."""

AxisTaps = tuple[tuple[int, int], ...]
"""Along one axis (index in the weights, offset in the image read) of every tap that reaches the pixels."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the image, so far from that of the first row; `uses`: the (row of the block, line of taps) that read it."""

    offset: int
    uses: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Column:
    """A distance along the width, and the (phase of pixels, column of taps) that read there; `odd`: every second
    element of a pair of vectors whose others are those of the column before it."""

    offset: int
    uses: tuple[tuple[int, int], ...]
    odd: bool


@dataclass(frozen=True, slots=True)
class TapPlan:
    """What the C is written from.

    A block is of `rows` rows of each phase: rows * spread[0] lines of the result, one behind the other.
    """

    step: tuple[int, int]
    spread: tuple[int, int]
    rows: int
    lines: tuple[Line, ...]
    columns: tuple[Column, ...]
    width: int
    taps: int

    @property
    def column_range(self) -> tuple[int, int]:
        """The least and the greatest distance along the width."""
        return self.columns[0].offset if self.columns else 0, self.columns[-1].offset if self.columns else 0


@dataclass(frozen=True, slots=True)
class Vectors:
    """Vectors of a row of `count` pixels: of `number`, those from `low` to `high` read only inside the image."""

    count: int
    number: int
    low: int
    high: int

    @property
    def edges(self) -> int:
        """Vectors that are masked."""
        return self.number - (self.high - self.low)


class ConvDepthwise(PixelConvolution):
    """FPROP and DGRAD; the latter gathers, a phase of the stride at a time, and stores phases of columns interleaved."""

    name = "conv_depthwise"

    def refuse(self, problem: Problem, target: Target) -> str | None:
        """Only FPROP and DGRAD of float32 and float64, one channel in a group, rank 1 or 2, at most 49 taps."""
        return super().refuse(problem, target) or _refuse_shape(problem)

    def estimate(self, problem: Problem, target: Target) -> float:
        """What memory takes, or a third of the peak where that is longer; vectors at the edges cost twice as much."""
        return _estimate(problem, target, 0.35)

    def build(self, problem: Problem, target: Target) -> Kernel:
        """The kernel; its workspace holds the masks of the vectors at the edges, a line of zeros, and lines for each thread."""
        conv, geometry, tile = conv_parts(problem, target)
        plan = plan_taps(geometry, conv.kind)
        name = conv_name(problem, f"depthwise_{_suffix(geometry, tile)}")
        source = conv_source("conv_depthwise.c.j2", name, problem, tile, plan=plan, several=geometry.channels != 1,
                             quick_order=dict(tile.shuffles)["QUICK_ORDER"], by_places=not _by_channel(problem))
        vectors = plan_vectors(geometry, plan, tile)
        parts, together = _cut(geometry, plan, target)
        masks = _mask_bytes(plan, vectors, tile)
        sizes = _sizes(geometry, vectors, conv.flops, target)
        numbers = (*sizes, parts, together, masks // tile.itemsize)
        spare = 1 + sizes[-1] * len(plan.lines) * geometry.channels
        return conv_kernel(problem, name, source, numbers, masks + spare * _room(plan, vectors, tile) * tile.itemsize)


class ConvWgradDepthwise(FilterGradient):
    """WGRAD: a vector of sums for each tap; slices of the pixels are added in order, whatever the threads."""

    name = "conv_wgrad_depthwise"

    def refuse(self, problem: Problem, target: Target) -> str | None:
        """Only WGRAD of float32 and float64, one channel in a group, rank 1 or 2, at most 49 taps."""
        return super().refuse(problem, target) or _refuse_shape(problem)

    def estimate(self, problem: Problem, target: Target) -> float:
        """What memory takes, or a third of the peak where that is longer."""
        return _estimate(problem, target, 0.32)

    def build(self, problem: Problem, target: Target) -> Kernel:
        """The kernel; its workspace holds masks, the sums of every slice, a line of zeros, and lines for each thread."""
        conv, geometry, tile = conv_parts(problem, target)
        plan = plan_taps(geometry, conv.kind)
        name = conv_name(problem, f"depthwise_{_suffix(geometry, tile)}")
        most_together = max(1, _KEPT_SUMS // plan.taps)
        source = conv_source("conv_depthwise_wgrad.c.j2", name, problem, tile, plan=plan, groups=plan_sums(plan),
                             most_together=most_together,
                             quick_order=dict(tile.shuffles)["QUICK_ORDER"])
        vectors = plan_vectors(geometry, plan, tile, exact=True)
        filters = geometry.groups * geometry.rows
        parts = max(1, min(geometry.outside[1], -(-16 // max(1, filters * geometry.batch))))
        slices = max(1, min(geometry.batch * parts, -(-16 // max(1, filters))))
        masks = _mask_bytes(plan, vectors, tile, extra=1)
        sizes = _sizes(geometry, vectors, conv.flops, target)
        sums = masks + align(slices * filters * plan.taps * tile.itemsize)
        together = max(1, min(most_together, filters * slices // (_TASKS * target.threads)))
        numbers = (*sizes, parts, slices, together, masks // tile.itemsize, sums // tile.itemsize)
        spare = (1 + sizes[-1] * len(plan.lines)) * _room(plan, vectors, tile)
        return conv_kernel(problem, name, source, numbers, sums + spare * tile.itemsize)


def plan_taps(geometry: Geometry, kind: Kind) -> TapPlan:
    """Which elements of the image a block of rows reads, and what each is used for."""
    forward = kind is not Kind.DGRAD
    step = (geometry.stride[1], geometry.stride[2]) if forward else (1, 1)
    spread = (1, 1) if forward else (geometry.stride[1], geometry.stride[2])
    phases = spread[0] * spread[1]
    rows = 1 if geometry.kernel[1] == 1 else max(1, _BLOCK_SUMS * min(2, phases) // phases)
    uses: dict[int, list[tuple[int, int]]] = {}
    for phase, taps in enumerate(axis_taps(geometry, kind, 2)):
        for index, offset in taps:
            uses.setdefault(offset, []).append((phase, index))
    columns = tuple(Column(offset, tuple(uses[offset]), step[1] == 2 and offset % 2 == 1 and offset - 1 in uses)
                    for offset in sorted(uses))
    return TapPlan(step, spread, rows, plan_lines(geometry, kind, rows), columns, geometry.kernel[2], geometry.taps)


def plan_lines(geometry: Geometry, kind: Kind, rows: int) -> tuple[Line, ...]:
    """The lines of the image that a block of `rows` rows of each phase reads."""
    step = 1 if kind is Kind.DGRAD else geometry.stride[1]
    uses: dict[int, list[tuple[int, int]]] = {}
    phases = axis_taps(geometry, kind, 1)
    for row in range(rows):
        for phase, taps in enumerate(phases):
            for index, offset in taps:
                uses.setdefault(row * step + offset, []).append((row * len(phases) + phase, index))
    return tuple(Line(offset, tuple(uses[offset])) for offset in sorted(uses))


def axis_taps(geometry: Geometry, kind: Kind, axis: int) -> tuple[AxisTaps, ...]:
    """The taps of every phase along an axis: pixel i of a phase reads image element i * step + offset."""
    size, stride, dilation, pad = (of[axis] for of in (geometry.kernel, geometry.stride, geometry.dilation, geometry.pad))
    places = [(index, (size - 1 - index if geometry.flip else index) * dilation) for index in range(size)]
    if kind is not Kind.DGRAD:
        return (tuple((index, place - pad) for index, place in places),)
    return tuple(tuple((index, (phase + pad - place) // stride) for index, place in places if (phase + pad - place) % stride == 0)
                 for phase in range(stride))


def plan_sums(plan: TapPlan) -> tuple[tuple[tuple[int, int], ...], ...]:
    """The taps (line, column) in groups whose sums stay in registers, nearly equal."""
    columns = [index for column in plan.columns for _, index in column.uses]
    lines = sorted({index for line in plan.lines for _, index in line.uses})
    if len(columns) > _SUMS:
        parts = -(-len(columns) // _SUMS)
        cuts = [len(columns) * part // parts for part in range(parts + 1)]
        return tuple(tuple((line, index) for index in columns[cuts[part]:cuts[part + 1]]) for line in lines
                     for part in range(parts))
    parts = -(-len(lines) // max(1, _SUMS // max(1, len(columns))))
    cuts = [len(lines) * part // parts for part in range(parts + 1)]
    return tuple(tuple((line, index) for line in lines[cuts[part]:cuts[part + 1]] for index in columns) for part in range(parts))


def plan_vectors(geometry: Geometry, plan: TapPlan, tile: GemmTile, *, exact: bool = False) -> Vectors:
    """The vectors of a row; the last one is moved back to end with it, and is one of the edge if `exact` and partly done twice."""
    count, lanes, step = -(-geometry.outside[2] // plan.spread[1]), tile.lanes, plan.step[1]
    number, inside = -(-count // lanes), geometry.inside[2]
    last = max(0, count - lanes)
    reach = step * (lanes - 1) + 1
    least, greatest = plan.column_range

    def start(vector: int) -> int:
        return min(vector * lanes, last)

    low = min(number, -(-max(0, -least) // (step * lanes)))
    if low < number and start(low) * step + least < 0:
        low += 1
    high = max(low, min(number, (inside - greatest - reach) // (step * lanes) + 1))
    if high == number - 1 and high >= low and last * step + greatest + reach <= inside:
        high = number
    if exact and count % lanes:
        high = min(high, number - 1)
    return Vectors(count, number, min(low, high), high)


def _refuse_shape(problem: Problem) -> str | None:
    conv = conv_problem(problem)
    if conv.w_shape[1] != 1:
        return f"it takes one input channel in a group, not {conv.w_shape[1]}"
    if conv.spec.ndim > 2:
        return f"it convolves along one or two axes, not {conv.spec.ndim}"
    taps = make_geometry(conv).taps
    return f"it writes out at most {_MOST_TAPS} taps, and the kernel has {taps}" if taps > _MOST_TAPS else None


def _estimate(problem: Problem, target: Target, share: float) -> float:
    conv, geometry, tile = conv_parts(problem, target)
    plan = plan_taps(geometry, conv.kind)
    vectors = plan_vectors(geometry, plan, tile)
    filled = max(1.0, (vectors.number + vectors.edges) * tile.lanes / max(1, vectors.count))
    gathered = 1.0 if plan.step[1] == 1 else 1.5 if plan.step[1] == 2 else 4.0
    seconds = compute_seconds(conv.flops * filled * gathered, tile.dtype, target, share)
    return START_SECONDS + max(seconds, target.copy_seconds(minimal_bytes(problem)))


def _by_channel(problem: Problem) -> bool:
    """Whether the epilogue, if there is one, reads nothing but the sums and one value for each channel."""
    epilogue = cast(Conv, problem.op).epilogue
    return epilogue is None or all(place == CHANNEL for place in epilogue.operands)


def _suffix(geometry: Geometry, tile: GemmTile) -> str:
    """What the name says of the taps that are written out."""
    axes = {"r": geometry.kernel, "u": geometry.stride, "l": geometry.dilation, "p": geometry.pad}
    words = "_".join(f"{letter}{numbers[1]}x{numbers[2]}" for letter, numbers in axes.items())
    return f"{tile.suffix}_{words}{'_flip' if geometry.flip else ''}"


def _sizes(geometry: Geometry, vectors: Vectors, flops: int, target: Target) -> tuple[int, ...]:
    """The first 14 numbers of both kernels, in the order of the struct Work of conv_depthwise_loads.c.j2."""
    threads = 1 if flops < PARALLEL_FLOPS else target.threads
    return (geometry.batch, geometry.groups, geometry.rows, geometry.channels, *geometry.inside[1:], *geometry.outside[1:],
            vectors.count, vectors.number, vectors.low, vectors.high, vectors.edges, threads)


def _mask_bytes(plan: TapPlan, vectors: Vectors, tile: GemmTile, extra: int = 0) -> int:
    return align((vectors.edges + 1) * (len(plan.columns) + extra) * tile.vector_bytes)


def _room(plan: TapPlan, vectors: Vectors, tile: GemmTile) -> int:
    """Elements from the first to the last that the vectors of a row read of a line."""
    step, (least, greatest) = plan.step[1], plan.column_range
    return max(0, vectors.count - tile.lanes) * step + greatest - least + _reach(step, tile.lanes)


def _reach(step: int, lanes: int) -> int:
    """Elements that are read to make a vector of every `step`-th: pairs of vectors for a step of 2."""
    return step * lanes if step <= 2 else step * (lanes - 1) + 1


def _cut(geometry: Geometry, plan: TapPlan, target: Target) -> tuple[int, int]:
    """Into how many parts the rows of a plane are cut, and how many parts are one task."""
    planes, rows = geometry.batch * geometry.groups * geometry.rows, -(-geometry.outside[1] // plan.spread[0])
    products = max(1, geometry.outside[1] * geometry.outside[2] * geometry.taps * max(1, geometry.channels))
    parts = 1
    while planes * parts < 8 * target.threads and rows // parts > 2 * plan.rows and products // parts > _TASK_PRODUCTS:
        parts *= 2
    small = min(planes * parts // (8 * target.threads), _TASK_PRODUCTS // max(1, products // parts))
    return parts, max(1, small, planes * parts // (_TASKS * target.threads))


DEPTHWISE: tuple[Implementation, ...] = (ConvDepthwise(), ConvWgradDepthwise())
