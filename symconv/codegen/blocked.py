"""What the kernels on blocks of channels (nChw8c) have in common: how the work is cut, and the numbers they are given."""
from __future__ import annotations

import math
from dataclasses import dataclass
from typing import cast

from ..graph import Op
from ..ops.convolution import Conv
from ..ops.spec import Kind
from ..target import Target
from .conv_common import Geometry, align, refuse_types
from .gemm_tile import GemmTile
from .implementation import Implementation
from .kernel import Problem

_MOVING_IN_CACHE, _MOVING_IN_MEMORY = 1.5, 0.8
"""How much longer than a plain copy a kernel's reading and writing takes, measured with MobileNetV2's layers, batch 1 and 8."""

_REGION_BYTES = 96 * 1024
"""What a task's part of the image may take of the second cache: with more, 3x3 filters were up to 13 % slower."""

_PASS_BYTES = 20 * 1024
"""What a panel's weights of one pass may take of the first cache."""

_TASKS = 4
"""Tasks for each thread that there should be at least."""


class BlockedConvolution(Implementation):
    """An implementation of FPROP whose result, at least, lies in blocks of channels."""

    def serves(self, op: Op) -> bool:
        """FPROP with a layout."""
        return isinstance(op, Conv) and op.layout is not None and op.kind is Kind.FPROP


def refuse_layout(problem: Problem, tile: GemmTile) -> str | None:
    """Why a kernel on blocks of `tile.lanes` channels cannot run the problem: layout or dtypes."""
    op = cast(Conv, problem.op)
    if op.layout is None:
        return "it takes tensors in blocks of channels"
    if op.kind is not Kind.FPROP:
        return "it makes responses"
    if op.layout.y != tile.lanes or op.layout.x not in (0, tile.lanes):
        return f"it works on blocks of {tile.lanes} channels, not {op.layout}"
    return refuse_types(problem)


def moving_seconds(nbytes: int, target: Target) -> float:
    """What reading and writing takes beside the products."""
    factor = _MOVING_IN_CACHE if nbytes <= target.ceilings.l3_bytes else _MOVING_IN_MEMORY
    return factor * target.copy_seconds(nbytes, working_set=nbytes)


@dataclass(frozen=True, slots=True)
class BlockedPlan:
    """The numbers behind the geometry in the struct Sizes of blocked_sizes.c.j2."""

    threads: int
    line_parts: int
    column_parts: int
    row_parts: int
    copies: bool
    line_pixels: int
    slice_pixels: int
    block_pixels: int
    pass_blocks: int
    offset_elements: int
    sum_elements: int
    scratch_elements: int

    @property
    def numbers(self) -> tuple[int, ...]:
        """In the order of the struct."""
        return (self.threads, self.line_parts, self.column_parts, self.row_parts, int(self.copies), self.line_pixels,
                self.slice_pixels, self.block_pixels, self.pass_blocks, self.offset_elements, self.sum_elements,
                self.scratch_elements)


@dataclass(frozen=True, slots=True)
class Cut:
    """Into how many parts the lines, the columns and the panels of rows are cut."""

    lines: int
    columns: int
    rows: int = 1


def needs_copy(geometry: Geometry) -> bool:
    """Whether some tap reads outside the image, so that bands of it are copied with zeros around."""
    return any(geometry.pad) or any(reach(geometry, axis, geometry.outside[axis]) > geometry.inside[axis] for axis in range(3))


def reach(geometry: Geometry, axis: int, count: int) -> int:
    """Image elements along an axis that `count` neighbouring outputs read."""
    return (count - 1) * geometry.stride[axis] + (geometry.kernel[axis] - 1) * geometry.dilation[axis] + 1


def region_pixels(geometry: Geometry, lines: int, columns: int) -> int:
    """Pixels of the image that a region of the result reads, in all slices of the kernel."""
    return geometry.kernel[0] * reach(geometry, 1, lines) * reach(geometry, 2, columns)


def cut_regions(geometry: Geometry, channel_bytes: int, region_bytes: int, granule: int) -> Cut:
    """Lines, then columns, cut so that the image behind a region takes at most `region_bytes`; columns in parts of `granule`."""
    _, lines, columns = geometry.outside
    most = max(1, region_bytes // channel_bytes)
    wide = columns
    while wide > granule and region_pixels(geometry, 1, wide) > most:
        wide = max(granule, -(-wide // 2))
    high = lines if wide == columns else 1
    while high > 1 and region_pixels(geometry, high, wide) > most:
        high = -(-high // 2) if high > 8 else high - 1
    return Cut(-(-lines // high), -(-columns // wide))


def cut_for_threads(geometry: Geometry, cut: Cut, tasks: int, panels: int, weights_first: bool, granule: int) -> Cut:
    """More parts where there would be too few tasks: of the panels where weights are the larger part, else of the pixels."""
    units = max(1, geometry.batch * geometry.groups * geometry.outside[0])

    def by_rows(cut: Cut) -> Cut:
        there = units * cut.lines * cut.columns
        return Cut(cut.lines, cut.columns, min(max(1, panels), max(1, -(-tasks // there))))

    if weights_first:
        cut = by_rows(cut)
    wanted = -(-tasks // max(1, units * cut.rows))
    lines = max(cut.lines, min(geometry.outside[1], -(-wanted // cut.columns)))
    columns = max(cut.columns, min(-(-geometry.outside[2] // granule), -(-wanted // lines)))
    cut = Cut(lines, columns, cut.rows)
    return cut if weights_first else by_rows(cut)


def make_plan(geometry: Geometry, tile: GemmTile, blocked_image: bool, threads: int) -> BlockedPlan:
    """How the dense kernel cuts its work."""
    channel_bytes = max(1, geometry.channels) * tile.itemsize
    panels, granule = -(-geometry.rows // tile.columns), 4 * tile.rows
    weights = geometry.rows * geometry.taps
    cut = cut_regions(geometry, channel_bytes, _REGION_BYTES, granule)
    if threads > 1:
        cut = cut_for_threads(geometry, cut, _TASKS * threads, panels, weights > math.prod(geometry.inside), granule)
    lines, columns = (-(-size // parts) for size, parts in zip(geometry.outside[1:], (cut.lines, cut.columns), strict=True))
    copies = needs_copy(geometry)
    line = reach(geometry, 2, columns) if copies else geometry.inside[2]
    slice_pixels = line * (reach(geometry, 1, lines) if copies else geometry.inside[1])
    block = slice_pixels * (geometry.kernel[0] if copies else geometry.inside[0])
    width = tile.lanes if blocked_image else max(1, geometry.channels)
    blocks = geometry.channels // width if blocked_image else 1
    pass_blocks = max(1, _PASS_BYTES // (geometry.taps * width * tile.columns * tile.itemsize))
    tiles = lines * -(-columns // tile.rows) if blocks > pass_blocks else 1
    sums = tiles * tile.rows * tile.columns
    band = geometry.channels * block if copies else 0
    scratch = align((sums + band) * tile.itemsize + tile.vector_bytes) // tile.itemsize
    offsets = align(8 * geometry.taps * (1 if blocked_image else geometry.channels)) // 8
    return BlockedPlan(threads, cut.lines, cut.columns, cut.rows, copies, line, slice_pixels, block, pass_blocks, offsets, sums,
                       scratch)


def reads_blocks(problem: Problem) -> bool:
    """Whether the tensor that is read lies in blocks too."""
    op = cast(Conv, problem.op)
    return op.block(op.kind.reads[0]) > 0
