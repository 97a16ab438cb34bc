"""WGRAD with 3x3 filters, no stride and no dilation, in Winograd's form: F(3x3, 4x4) and F(3x3, 2x2)."""
from __future__ import annotations

from dataclasses import dataclass

from ..config import config
from ..target import Target
from .conv_common import (
    FilterGradient,
    Geometry,
    conv_kernel,
    conv_name,
    conv_parts,
    conv_problem,
    conv_source,
    make_geometry,
    refuse_winograd,
)
from .conv_epilogue import make_epilogue
from .gemm_tile import PARALLEL_FLOPS, START_SECONDS, GemmTile, compute_seconds, cycle_seconds
from .kernel import Kernel, Problem
from .winograd_plan import MOST_TILES, RUN_PIXELS, count_tiles, make_turn, odd_lines, parts_of
from .winograd_transforms import WGRAD_POINTS, cook_toom, straight_line

_CHUNK_BYTES = 10 * 1024 * 1024
"""What the data of a chunk of tiles may take: a part of the third cache."""

_DEPTH = 24
"""Tiles summed in one pass: sums of sums are more exact, and errors of sums are most of all errors."""

PRODUCT_SHARE, PASS_TERMS = 0.9, 6
"""The products' share of the peak in a long pass; what starting and ending a pass costs, in terms. Here and below: measured with
64 to 512 channels, batch 1 and 8.
"""

DATA_CYCLES, RESULT_CYCLES = 9.5, 3.0
"""Cycles for each point of a tile and a vector of channels, and of a filter and such a vector."""


@dataclass(frozen=True, slots=True)
class WgradPlan:
    """How the work is cut: the numbers behind the geometry in the struct Sizes of winograd_wgrad.c.j2."""

    block_rows: int
    block_panels: int
    chunk_tiles: int
    piece_tiles: int
    image_plane: int
    response_plane: int
    sums_plane: int
    kept: bool
    image_elements: int
    response_elements: int
    sums_elements: int

    @property
    def numbers(self) -> tuple[int, ...]:
        """In the order of the struct."""
        return (self.block_rows, self.block_panels, self.chunk_tiles, self.piece_tiles, self.image_plane, self.response_plane,
                self.sums_plane, int(self.kept), self.image_elements, self.response_elements, self.sums_elements)


class ConvWinogradWgrad(FilterGradient):
    """Tiles of the image and of the response's gradient are transformed, multiplied point by point, summed, and transformed back.

    Sums are taken in an order that depends on the sizes alone, so that the bits do not depend on the number of threads.
    """

    def __init__(self, size: int, least_filters: int, least_tiles: int) -> None:
        self.size, self.points, self.least_filters, self.least_tiles = size, (size + 2) ** 2, least_filters, least_tiles
        self.name = f"conv_winograd_wgrad_{size}x{size}"

    def refuse(self, problem: Problem, target: Target) -> str | None:
        """Only WGRAD of float32 with 3x3 filters, no stride and no dilation."""
        if config.conv.winograd == "off":
            return "the setting conv.winograd is 'off'"
        geometry = make_geometry(conv_problem(problem))
        reason = super().refuse(problem, target) or refuse_winograd(problem)
        if reason is None and geometry.rows * geometry.channels < self.least_filters:
            return (f"it takes {self.least_filters} filters or more, not {geometry.rows} times {geometry.channels}: for so few "
                    f"the direct kernel is faster, or has less than a quarter of the errors")
        tiles = count_tiles(geometry, self.size)
        if reason is None and 0 < tiles < self.least_tiles:
            return f"the sums of {tiles} tiles are so exact that errors of the transforms would be more than 4 times theirs"
        return reason

    def estimate(self, problem: Problem, target: Target) -> float:
        """Transforms and products at their shares of the peak, tails of tiles and channels counted."""
        conv, geometry, tile = conv_parts(problem, target)
        tiles, panels = count_tiles(geometry, self.size), -(-geometry.channels // tile.columns)
        products = self.points * geometry.groups * geometry.rows * panels * tile.columns * tiles
        vectors = tiles * sum(-(-size // tile.lanes) for size in (geometry.channels, geometry.rows))
        cycles = self.points * geometry.groups * (DATA_CYCLES * vectors + RESULT_CYCLES * geometry.rows * panels * 2)
        threads = max(target.threads, 1) if conv.flops >= PARALLEL_FLOPS else 1
        idle = threads / min(threads, panels * -(-geometry.rows // (2 * tile.columns)))
        depth = tiles / -(-tiles // _DEPTH) if tiles else 1
        share = PRODUCT_SHARE * depth / (depth + PASS_TERMS)
        return (2 * START_SECONDS + compute_seconds(2 * products * idle, "float32", target, share)
                + cycle_seconds(cycles, target, threads))

    def build(self, problem: Problem, target: Target) -> Kernel:
        """The kernel; its workspace holds the data of a chunk of tiles, and sums."""
        conv, geometry, tile = conv_parts(problem, target)
        threads = target.threads if conv.flops >= PARALLEL_FLOPS else 1
        plan = make_plan(geometry, tile, self.size)
        tasks = -(-geometry.rows // plan.block_rows) * -(-geometry.channels // (plan.block_panels * tile.columns))
        elements = plan.image_elements + plan.response_elements + (threads + (tasks if plan.kept else 0)) * plan.sums_elements
        numbers = (geometry.batch, geometry.groups, geometry.rows, geometry.channels, *geometry.inside[1:], *geometry.outside[1:],
                   *geometry.pad[1:], int(geometry.flip), threads, *plan.numbers)
        name = conv_name(problem, f"winograd_{self.size}x{self.size}_{tile.suffix}")
        return conv_kernel(problem, name, self._render(problem, tile, name), numbers, elements * 4)

    def _render(self, problem: Problem, tile: GemmTile, name: str) -> str:
        transforms, epilogue = cook_toom(3, self.size, WGRAD_POINTS[self.size]), make_epilogue(problem, tile)
        return conv_source(
            "winograd_wgrad.c.j2", name, problem, tile, m=self.size, n=transforms.size, depth=_DEPTH,
            run=RUN_PIXELS // self.size, most_tiles=MOST_TILES, turn=make_turn(tile.lanes),
            by_channel=any("channel_" in line for line in epilogue.before),
            taps_lines=straight_line(transforms.taps, "x{}", "y{}"), data_lines=straight_line(transforms.data, "x{}", "y{}"),
            result_lines=straight_line(transforms.result, "x{}", "y{}"))


def make_plan(geometry: Geometry, tile: GemmTile, size: int) -> WgradPlan:
    """Chunks of tiles whose data stay in the third cache; tasks that divide filters and channels."""
    points, tiles = (size + 2) ** 2, max(1, count_tiles(geometry, size))
    rows, panels = -(-max(geometry.rows, 1) // tile.columns), max(1, -(-geometry.channels // tile.columns))
    chunk = parts_of(tiles, -(-tiles * points * (rows + panels) * tile.columns * tile.itemsize // _CHUNK_BYTES))
    row_panels, block_panels = choose_blocks(rows, panels)
    block_rows = row_panels * tile.columns
    image_plane, response_plane = odd_lines(chunk * tile.columns, tile), odd_lines(chunk * block_rows, tile)
    sums_plane = odd_lines(block_rows * tile.columns, tile)
    return WgradPlan(
        block_rows, block_panels, chunk, min(MOST_TILES, parts_of(chunk, -(-chunk // 28))), image_plane, response_plane, sums_plane,
        chunk < tiles, panels * points * image_plane, -(-rows // row_panels) * points * response_plane,
        block_panels * points * sums_plane)


def choose_blocks(rows: int, panels: int) -> tuple[int, int]:
    """Of `rows` panels of filters and `panels` of channels those of a task: with 64 to 512 channels it makes little difference."""
    return min(rows, 2), min(panels, 1)


CONV_WINOGRAD_WGRAD = (ConvWinogradWgrad(4, 2048, 4), ConvWinogradWgrad(2, 512, 16))
