"""FPROP and DGRAD with 3x3 filters, no stride and no dilation, in Winograd's form: F(2x2, 3x3) and F(4x4, 3x3)."""
from __future__ import annotations

from dataclasses import dataclass

from ..config import config
from ..ops.spec import Kind
from ..target import Target
from .conv_common import (
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
from .gemm_tile import FLOPS_PER_CYCLE_NS, PARALLEL_FLOPS, START_SECONDS, GemmTile, compute_seconds, make_tile
from .kernel import Kernel, Operand, Preparation, Problem
from .templates import render_kernel
from .winograd_transforms import POINTS, cook_toom, straight_line

_DEPTH = 64
"""Channels summed in one pass. Sums of sums are more exact: with all of 512 channels in one, errors are 1.8 times as large."""

_SHARED_BYTES = 6 * 1024 * 1024
"""What the data of all tiles may take for them to be made first and shared: a part of the third cache."""

_OWN_BYTES = 450 * 1024
"""What a task's own tiles or weights may take of the second cache."""

_WEIGHT_BYTES = 2 * 1024 * 1024
"""All weights are read for each task of tiles: for each so many bytes of them a task takes one more panel, up to 4."""

PRODUCT_SHARE = 0.75
"""Share of the peak at which the products run, measured with 64 to 256 channels."""

DATA_CYCLES, RESULT_CYCLES = 12.0, 12.0
"""Cycles for each point of a vector of tiles and a channel of the image, or of the result, their memory traffic counted in;
measured at 56x56 pixels, 64 channels, batch 8."""

WEIGHT_CYCLES = {2: 4.5, 4: 7.0}
"""Cycles for each point of a register tile's rows and a channel summed over, for 2 and 4 results of a tile; measured at 7x7
pixels, 512 channels, batch 1 to 8, where the weights no longer fit the second cache."""


@dataclass(frozen=True, slots=True)
class WinogradPlan:
    """How the work is cut: the numbers behind the geometry in the struct Sizes of winograd.c.j2."""

    block_rows: int
    block_panels: int
    shared: bool
    weights_first: bool
    weight_plane: int
    data_plane: int
    product_plane: int
    weight_elements: int
    data_elements: int
    scratch_elements: int

    @property
    def numbers(self) -> tuple[int, ...]:
        """In the order of the struct."""
        return (self.block_rows, self.block_panels, int(self.shared), int(self.weights_first), self.weight_plane, self.data_plane,
                self.product_plane, self.weight_elements, self.data_elements, self.scratch_elements)


class ConvWinograd(PixelConvolution):
    """Tiles of the image and the filters are transformed, multiplied point by point, and transformed back."""

    def __init__(self, results: int, least_channels: int) -> None:
        self.results, self.least_channels = results, least_channels
        self.name = f"conv_winograd_{results}x{results}"
        self.points = (results + 2) ** 2

    def refuse(self, problem: Problem, target: Target) -> str | None:
        """Only FPROP and DGRAD of float32 with 3x3 filters, no stride, no dilation, and enough channels."""
        conv = conv_problem(problem)
        spec, dtype = conv.spec, problem.inputs[0].dtype
        if config.conv.winograd == "off":
            return "the setting conv.winograd is 'off'"
        if conv.kind is Kind.WGRAD:
            return "it makes images and responses, not filter gradients"
        if dtype != "float32":
            return f"it computes float32, not {dtype}"
        if conv.w_shape[2:] != (3, 3) or set(spec.stride + spec.dilation) != {1}:
            return f"it takes 3x3 filters without stride and dilation, not {conv}"
        geometry = make_geometry(conv)
        if max(spec.pad_lo + spec.pad_hi) > 2:
            return f"the padding {spec.pad_lo}, {spec.pad_hi} makes results of nothing but zeros, which would be rounded"
        if geometry.groups > 1 and min(geometry.rows, geometry.channels) < 8:
            return f"{geometry.channels} channels to {geometry.rows} in a group are too few"
        if geometry.channels < self.least_channels:
            return (f"over {geometry.channels} channels its errors of rounding would be more than 4 times those of direct sums; "
                    f"it takes {self.least_channels} channels or more")
        return refuse_types(problem)

    def estimate(self, problem: Problem, target: Target) -> float:
        """Transforms and products at their shares of the peak, tails of tiles and channels counted."""
        conv = conv_problem(problem)
        geometry, tile = make_geometry(conv), make_tile("float32", target)
        vectors, row_tiles = -(-count_tiles(geometry, self.results) // tile.lanes), -(-geometry.rows // tile.rows)
        products = self.points * geometry.channels * row_tiles * tile.rows * vectors * geometry.groups
        transforms = self.points * geometry.groups * (vectors * (DATA_CYCLES * geometry.channels + RESULT_CYCLES * geometry.rows)
                                                      + WEIGHT_CYCLES[self.results] * geometry.channels * row_tiles)
        threads = max(target.threads, 1) if conv.flops >= PARALLEL_FLOPS else 1
        regions = 3 if threads > 1 else 1
        return (regions * START_SECONDS + compute_seconds(2 * tile.lanes * products, "float32", target, PRODUCT_SHARE)
                + transforms / FLOPS_PER_CYCLE_NS / threads)

    def prepare(self, problem: Problem, target: Target) -> tuple[Preparation, ...]:
        """The transformed weights, where they are made before anything else."""
        cut = self._cut(problem, target)
        if not cut.plan.weights_first:
            return ()
        name = self._name(problem, target)
        weights = Operand.contiguous("float32", (cut.geometry.groups * cut.plan.weight_elements,))
        return (Preparation(1, Kernel(f"{name}_weights", self._render(problem, target), cut.numbers), weights),)

    def build(self, problem: Problem, target: Target) -> Kernel:
        """The kernel; its workspace holds data that are transformed first, and each thread's scratch."""
        cut = self._cut(problem, target)
        elements = cut.plan.data_elements + cut.threads * cut.plan.scratch_elements
        return Kernel(self._name(problem, target), self._render(problem, target), cut.numbers, elements * 4,
                      flops=conv_problem(problem).flops, bytes=minimal_bytes(problem))

    def _name(self, problem: Problem, target: Target) -> str:
        kind, tile = conv_problem(problem).kind.value, make_tile("float32", target)
        return f"sc_conv_{kind}_winograd_{self.results}x{self.results}_{tile.suffix}{epilogue_suffix(problem)}"

    def _cut(self, problem: Problem, target: Target) -> _Cut:
        conv = conv_problem(problem)
        geometry, tile = make_geometry(conv), make_tile("float32", target)
        backward = conv.kind is Kind.DGRAD
        pads = tuple(2 - pad if backward else pad for pad in geometry.pad[1:])
        threads = target.threads if conv.flops >= PARALLEL_FLOPS else 1
        plan = make_plan(geometry, tile, self.results, threads)
        numbers = (geometry.batch, geometry.groups, geometry.rows, geometry.channels, *geometry.inside[1:], *geometry.outside[1:],
                   *pads, int(geometry.flip != backward), threads, *plan.numbers)
        return _Cut(geometry, plan, threads, numbers)

    def _render(self, problem: Problem, target: Target) -> str:
        """The source, with the kernel and the one that makes the weights."""
        tile, transforms = make_tile("float32", target), cook_toom(self.results, 3, POINTS[self.results])
        return render_kernel(
            "winograd.c.j2", function=self._name(problem, target), kind=conv_problem(problem).kind.value, tile=tile,
            m=self.results, n=transforms.size, depth=_DEPTH, quad_shuffles=quad_shuffles(tile.lanes),
            epilogue=make_epilogue(problem, tile), taps_lines=straight_line(transforms.taps, "x{}", "y{}"),
            data_lines=straight_line(transforms.data, "x{}", "y{}"),
            result_lines=straight_line(transforms.result, "x{}", "y{}"))


@dataclass(frozen=True, slots=True)
class _Cut:
    """A problem's numbers: geometry, plan, threads, and those of the struct Sizes."""

    geometry: Geometry
    plan: WinogradPlan
    threads: int
    numbers: tuple[int, ...]


def quad_shuffles(lanes: int) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """Name and lane numbers of shuffles of two vectors within each four lanes."""
    numbers = {"LOW": (0, lanes, 1, lanes + 1), "HIGH": (2, lanes + 2, 3, lanes + 3),
               "EVEN": (0, 2, lanes, lanes + 2), "ODD": (1, 3, lanes + 1, lanes + 3)}
    return tuple((f"QUADS_{name}", tuple(first + each for first in range(0, lanes, 4) for each in four))
                 for name, four in numbers.items())


def count_tiles(geometry: Geometry, results: int) -> int:
    """Tiles of all images."""
    return geometry.batch * -(-geometry.outside[1] // results) * -(-geometry.outside[2] // results)


def make_plan(geometry: Geometry, tile: GemmTile, results: int, threads: int) -> WinogradPlan:
    """Data shared and channels divided where tiles are few; else each task takes tiles through all stages."""
    points, panel = (results + 2) ** 2, tile.columns
    panels = max(1, -(-count_tiles(geometry, results) // panel))
    row_tiles = max(1, -(-geometry.rows // tile.rows))
    data_plane = (geometry.channels + 1) * panel
    weight_plane = align((geometry.channels * tile.rows + tile.lanes) * tile.itemsize) // tile.itemsize
    panel_bytes = points * data_plane * tile.itemsize
    shared, block_rows, block_panels = choose_blocks(panels, row_tiles, panel_bytes, points * weight_plane * tile.itemsize, threads)
    weights_first = not shared or block_panels < panels
    product_plane = block_rows * tile.rows * block_panels * panel + panel
    blocks = -(-row_tiles // block_rows)
    own = points * product_plane
    block_weights = points * block_rows * weight_plane
    return WinogradPlan(
        block_rows, block_panels, shared, weights_first, weight_plane, data_plane, product_plane,
        blocks * block_weights if weights_first else 0, panels * points * data_plane if shared else 0,
        own + (0 if weights_first else block_weights) + (0 if shared else block_panels * points * data_plane))


def choose_blocks(panels: int, row_tiles: int, panel_bytes: int, row_bytes: int, threads: int) -> tuple[bool, int, int]:
    """Whether data are shared, and how many register tiles of channels and panels of tiles a task works on at once.

    `panel_bytes` are those of a panel's data, `row_bytes` those of a register tile's weights.
    """
    if panels * panel_bytes <= _SHARED_BYTES and 2 * panels < row_tiles:
        most = max(1, min(4, _OWN_BYTES // row_bytes))
        return True, parts_of(row_tiles, max(-(-row_tiles // most), min(4 * threads, row_tiles // 2))), panels
    wanted = max(_OWN_BYTES // panel_bytes, min(4, row_tiles * row_bytes // _WEIGHT_BYTES), 1)
    return False, parts_of(row_tiles, -(-row_tiles // 4)), max(1, min(wanted, panels // (4 * threads)))


def parts_of(size: int, parts: int) -> int:
    """The length of nearly equal parts."""
    return -(-size // max(1, min(parts, size)))


CONV_WINOGRAD = (ConvWinograd(4, 8), ConvWinograd(2, 1))
