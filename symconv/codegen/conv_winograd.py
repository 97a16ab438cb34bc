"""FPROP and DGRAD with 3x3 filters and no stride in Winograd's form: F(2x2, 3x3) and F(4x4, 3x3).

A dilated convolution is one without dilation of each phase of the image: every second line and column, say.  Where sizes divide,
the phases are copied apart, convolved as so many images, and copied together.
"""
from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import cast

from ..config import config
from ..graph import Op
from ..ops.conv_problem import ConvProblem
from ..ops.convolution import Conv
from ..ops.epilogue import CHANNEL
from ..ops.layout import Layout
from ..ops.spec import Kind
from ..target import Target
from .conv_common import (
    Geometry,
    PixelConvolution,
    conv_kernel,
    conv_name,
    conv_parts,
    conv_problem,
    conv_source,
    refuse_winograd,
)
from .gemm_tile import PARALLEL_FLOPS, START_SECONDS, GemmTile, compute_seconds, cycle_seconds, make_tile
from .kernel import Kernel, Operand, Preparation, Problem
from .winograd_plan import DEPTH, MOST_TILES, RUN_PIXELS, SMALL_TILE_DEPTH, count_tiles, make_turn, odd_lines, parts_of
from .winograd_transforms import POINTS, cook_toom, straight_line

_SHARED_BYTES = 8 * 1024 * 1024
"""What the data of all tiles that are made first may take: a part of the third cache."""

_OWN_BYTES = 340 * 1024
"""What the data of a task's own tiles may take of the second cache."""

_TILES, _LEAST_TILES, _PANELS, _SHARED_PANELS = 18, 12, 2, 4
"""Tiles of a block at most, tiles of a task's own at least, panels of rows of a block at most, and where data are shared: measured
with 64 to 512 channels.  Shared data are read once for each block, and may be more than the second cache holds (14x14 pixels, 256
channels: 630 KB), so there more panels read them less often."""

PRODUCT_SHARE = 0.83
"""Share of the peak at which the products run, measured with 64 to 256 channels."""

DATA_CYCLES, RESULT_CYCLES = 9.5, 7.5
"""Cycles for each point of a tile and a vector of channels of the image, or of the result, their memory traffic counted in;
measured at 56x56 pixels, 64 channels, batch 8."""

BLOCKED_SHARE = 0.8
"""What is left of those cycles where image and result lie in blocks of channels, and nothing is turned."""

PHASE_COPIES = 2.0
"""How much longer than a plain copy it takes to copy phases apart, or together."""

_FUSED_TILES = 64
"""Tiles at most where a task makes its weights itself: all are one block, so that each weight is made once."""

WEIGHT_CYCLES = 5.6
"""Cycles for each point of a vector of filters, where a task makes its weights itself; measured with 512x512 filters."""

WEIGHT_SHARE = 0.5
"""Share of the time to copy the weights that is left where they are read while the products are made."""


@dataclass(frozen=True, slots=True)
class WinogradPlan:
    """How the work is cut: the numbers behind the geometry in the struct Sizes of winograd.c.j2."""

    block_panels: int
    block_tiles: int
    chunk_tiles: int
    depth: int
    fused: bool
    data_step: int
    data_plane: int
    product_plane: int
    weight_elements: int
    data_elements: int
    scratch_elements: int

    @property
    def numbers(self) -> tuple[int, ...]:
        """In the order of the struct."""
        return (self.block_panels, self.block_tiles, self.chunk_tiles, self.depth, int(self.fused), self.data_step, self.data_plane,
                self.product_plane, self.weight_elements, self.data_elements, self.scratch_elements)


class ConvWinograd(PixelConvolution):
    """Tiles of the image and the filters are transformed, multiplied point by point, and transformed back.

    The filters are transformed by a kernel of their own, or, `fused`, by the tasks that use them: where they are new on each call
    and tiles are few, they never go through memory.
    """

    def __init__(self, results: int, least_channels: int, fused: bool = False) -> None:
        self.results, self.least_channels, self.fused = results, least_channels, fused
        self.name = f"conv_winograd_{results}x{results}{'_fused' if fused else ''}"
        self.points = (results + 2) ** 2

    def serves(self, op: Op) -> bool:
        """FPROP and DGRAD of plain tensors, FPROP in blocks of channels."""
        return super().serves(op) or (isinstance(op, Conv) and op.kind is Kind.FPROP and op.layout is not None)

    def refuse(self, problem: Problem, target: Target) -> str | None:
        """Only FPROP and DGRAD of float32 with 3x3 filters, no stride, sizes that the dilation divides, and enough channels."""
        if config.conv.winograd == "off":
            return "the setting conv.winograd is 'off'"
        return super().refuse(problem, target) or refuse_winograd(problem, dilated=True) or self._refuse_sizes(problem, target)

    def _refuse_sizes(self, problem: Problem, target: Target) -> str | None:
        reason = _refuse_dilation(problem)
        if reason is not None:
            return reason
        conv, geometry, tile = _parts(problem, target)
        lanes, layout = tile.lanes, conv.layout
        if layout is not None and (layout != Layout(lanes, lanes) or geometry.rows % lanes or geometry.channels % lanes):
            return f"it takes image and result both plain or both in blocks of {lanes} channels that are of one group, not {conv}"
        steps = _phases(conv) * 2
        if any(pad > 2 * step for pad, step in zip(conv.spec.pad_lo + conv.spec.pad_hi, steps, strict=True)):
            return f"the padding {conv.spec.pad_lo}, {conv.spec.pad_hi} makes results of nothing but zeros, which would be rounded"
        if geometry.channels < self.least_channels:
            return (f"over {geometry.channels} channels its errors of rounding would be more than 4 times those of direct sums; "
                    f"it takes {self.least_channels} channels or more")
        tiles = count_tiles(geometry, self.results)
        if self.fused and tiles > _FUSED_TILES:
            return f"it takes {_FUSED_TILES} tiles at most, not {tiles}: filters would be transformed again and again"
        return None

    def estimate(self, problem: Problem, target: Target) -> float:
        """Transforms and products at their shares of the peak, tails of tiles and channels counted."""
        conv, geometry, tile = _parts(problem, target)
        tiles, panels = count_tiles(geometry, self.results), -(-geometry.rows // tile.columns)
        products = self.points * geometry.groups * geometry.channels * panels * tile.columns * tiles
        vectors = DATA_CYCLES * -(-geometry.channels // tile.lanes) + RESULT_CYCLES * -(-geometry.rows // tile.lanes)
        transforms = self.points * geometry.groups * tiles * vectors * (BLOCKED_SHARE if conv.layout else 1.0)
        filters = geometry.groups * geometry.channels * panels * tile.columns
        weights = filters * tile.itemsize * (9 if self.fused else self.points)
        cycles = transforms + (WEIGHT_CYCLES * self.points * filters / tile.lanes if self.fused else 0)
        threads = max(target.threads, 1) if conv.flops >= PARALLEL_FLOPS else 1
        copied = 2 * (problem.inputs[0].nbytes + problem.outputs[0].nbytes) if math.prod(_phases(conv)) > 1 else 0
        seconds = (2 if threads > 1 else 1) * START_SECONDS + PHASE_COPIES * target.copy_seconds(copied, threads, copied)
        seconds += compute_seconds(2 * products, "float32", target, PRODUCT_SHARE) + cycle_seconds(cycles, target, threads)
        return seconds + WEIGHT_SHARE * target.copy_seconds(weights, threads, weights)

    def prepare(self, problem: Problem, target: Target) -> tuple[Preparation, ...]:
        """The transformed weights, unless the tasks make them."""
        if self.fused:
            return ()
        cut = self._cut(problem, target)
        name = self._name(problem, target)
        weights = Operand.contiguous("float32", (cut.geometry.groups * cut.plan.weight_elements,))
        return (Preparation(1, Kernel(f"{name}_weights", self._render(problem, target), cut.numbers), weights),)

    def build(self, problem: Problem, target: Target) -> Kernel:
        """The kernel; its workspace holds data that are transformed first, and each thread's scratch."""
        cut = self._cut(problem, target)
        elements = cut.plan.data_elements + cut.threads * cut.plan.scratch_elements
        if math.prod(_phases(conv_problem(problem))) > 1:
            elements += problem.inputs[0].size + problem.outputs[0].size + 2 * make_tile("float32", target).lanes
        return conv_kernel(problem, self._name(problem, target), self._render(problem, target), cut.numbers, elements * 4)

    def _name(self, problem: Problem, target: Target) -> str:
        conv = conv_problem(problem)
        phases = "_l{}x{}".format(*_phases(conv)) if math.prod(_phases(conv)) > 1 else ""
        form = "_blocked" if conv.layout else phases
        return conv_name(problem, f"winograd_{self.results}x{self.results}{form}_{make_tile('float32', target).suffix}")

    def _cut(self, problem: Problem, target: Target) -> _Cut:
        conv, geometry, tile = _parts(problem, target)
        backward = conv.kind is Kind.DGRAD
        pads = tuple(2 - pad if backward else pad for pad in geometry.pad[1:])
        threads = target.threads if conv.flops >= PARALLEL_FLOPS else 1
        plan = make_plan(geometry, tile, self.results, threads, self.fused)
        numbers = (geometry.batch, geometry.groups, geometry.rows, geometry.channels, *geometry.inside[1:], *geometry.outside[1:],
                   *pads, int(geometry.flip != backward), threads, *plan.numbers)
        return _Cut(geometry, plan, threads, numbers)

    def _render(self, problem: Problem, target: Target) -> str:
        """The source, with the kernel and the one that makes the weights."""
        tile, transforms = make_tile("float32", target), cook_toom(self.results, 3, POINTS[self.results])
        return conv_source(
            "winograd.c.j2", self._name(problem, target), problem, tile, m=self.results, n=transforms.size,
            run=RUN_PIXELS // self.results, most_tiles=MOST_TILES, turn=make_turn(tile.lanes),
            blocked=conv_problem(problem).layout is not None, phases=_phases(conv_problem(problem)),
            taps_lines=straight_line(transforms.taps, "x{}", "y{}"),
            data_lines=straight_line(transforms.data, "x{}", "y{}"),
            result_lines=straight_line(transforms.result, "x{}", "y{}"))


def _phases(conv: ConvProblem) -> tuple[int, int]:
    """How many phases lines and columns have: the dilation."""
    down, across = conv.spec.dilation
    return down, across


def _parts(problem: Problem, target: Target) -> tuple[ConvProblem, Geometry, GemmTile]:
    """As `conv_parts`; with a dilation, each phase is an image, and the dilation is gone."""
    conv, geometry, tile = conv_parts(problem, target)
    steps = (1, *_phases(conv))

    def divided(sizes: tuple[int, int, int]) -> tuple[int, int, int]:
        a, b, c = (size // step for size, step in zip(sizes, steps, strict=True))
        return a, b, c

    return conv, replace(geometry, batch=geometry.batch * math.prod(steps), inside=divided(geometry.inside),
                         outside=divided(geometry.outside), pad=divided(geometry.pad), dilation=(1, 1, 1)), tile


def _refuse_dilation(problem: Problem) -> str | None:
    """Why a dilated problem does not fall into phases of one size."""
    conv, epilogue = conv_problem(problem), cast(Conv, problem.op).epilogue
    if math.prod(_phases(conv)) == 1:
        return None
    sizes = zip(conv.x_shape[2:], conv.spec.pad_lo, conv.spec.pad_hi, strict=True)
    if any(number % step for numbers, step in zip(sizes, _phases(conv), strict=True) for number in numbers):
        return f"the dilation {conv.spec.dilation} does not divide the image's sizes and the padding of {conv}"
    if conv.layout is not None:
        return "images in blocks of channels are not taken apart for a dilation"
    if epilogue is not None and any(place != CHANNEL for place in epilogue.operands):
        return "what is fused reads tensors of the result's size, whose phases would have to be taken apart too"
    return None


@dataclass(frozen=True, slots=True)
class _Cut:
    """A problem's numbers: geometry, plan, threads, and those of the struct Sizes."""

    geometry: Geometry
    plan: WinogradPlan
    threads: int
    numbers: tuple[int, ...]


def make_plan(geometry: Geometry, tile: GemmTile, results: int, threads: int, fused: bool = False) -> WinogradPlan:
    """Data shared and rows divided where tiles are few or channels many; else each task takes tiles through all stages."""
    points, tiles = (results + 2) ** 2, max(1, count_tiles(geometry, results))
    panels = max(1, -(-geometry.rows // tile.columns))
    data_step = odd_lines(-(-geometry.channels // tile.lanes) * tile.lanes, tile)
    blocks = Blocks(1, tiles, tiles) if fused else choose_blocks(tiles, panels, points * data_step * tile.itemsize, threads)
    data_plane, product_plane = odd_lines(blocks.tiles * data_step, tile), odd_lines(blocks.tiles * tile.columns, tile)
    depth = SMALL_TILE_DEPTH if results == 2 else DEPTH
    passes = max(1, -(-geometry.channels // depth))
    count = -(-panels // blocks.panels)
    weights = points * count * (geometry.channels * blocks.panels + passes) * tile.columns
    made = points * (blocks.panels * -(-geometry.channels // passes) + 1) * tile.columns if fused else 0
    return WinogradPlan(
        blocks.panels, blocks.tiles, blocks.chunk, depth, fused, data_step, data_plane, product_plane, 0 if fused else weights,
        blocks.chunk // blocks.tiles * points * data_plane,
        points * blocks.panels * product_plane + made + (0 if blocks.chunk else points * data_plane))


@dataclass(frozen=True, slots=True)
class Blocks:
    """Panels of rows, and tiles, that a task works on at once; tiles whose data are made first (0: none), a multiple of `tiles`."""

    panels: int
    tiles: int
    chunk: int


def choose_blocks(tiles: int, panels: int, data_bytes: int, threads: int) -> Blocks:
    """How to cut `tiles` with `panels` of rows; `data_bytes` are those of a tile's data."""
    own = min(_OWN_BYTES // data_bytes, _TILES)
    if own >= _LEAST_TILES and tiles >= 4 * threads * _LEAST_TILES:
        return Blocks(min(panels, _PANELS), parts_of(tiles, -(-tiles // own)), 0)
    block_tiles = parts_of(tiles, -(-tiles // _TILES))
    tile_blocks = -(-tiles // block_tiles)
    blocks = max(-(-panels // _SHARED_PANELS), min(panels, -(-4 * threads // tile_blocks)))
    chunk = min(tile_blocks, max(1, _SHARED_BYTES // (block_tiles * data_bytes))) * block_tiles
    return Blocks(parts_of(panels, blocks), block_tiles, chunk)


CONV_WINOGRAD = (ConvWinograd(4, 8), ConvWinograd(2, 1), ConvWinograd(4, 8, fused=True), ConvWinograd(2, 1, fused=True))
