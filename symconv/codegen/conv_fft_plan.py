"""How convolutions by Fourier transforms are cut into tiles, what refuses them, and what they are expected to cost."""
from __future__ import annotations

import math
from dataclasses import dataclass, replace

from ..config import config
from ..ops.conv_problem import ConvProblem
from ..ops.spec import Kind
from ..target import Target
from .conv_common import Geometry, Triple, conv_parts
from .gemm_tile import PARALLEL_FLOPS, GemmTile
from .kernel import Problem

LEAST_TAPS = 20
"""Taps below which direct sums, or Winograd's form, are faster whatever the sizes."""

_ACROSS, _DOWN = (16, 32, 64, 128, 256, 512, 1024), (1, 8, 16, 32, 64)
_MOST_PIXELS = 4096  # of a tile: a pair of vectors of it fills half of the second cache
_CHUNK_BYTES = 8 * 1024 * 1024
"""What the spectra of the tiles that are worked on at once may take: a part of the third cache."""

PRODUCT_SHARE = 0.73
"""Share of the peak at which the products run; this and the cycles were fitted to ten problems of one and two axes."""

PIXEL_CYCLES = 12.0
"""Cycles for each pixel of a tile, doubling of the tile's size, and complex vector of channels, loading and storing counted in."""

_SMALL_PIXELS, _SMALL_FACTOR, _LARGE_PIXELS, _LARGE_FACTOR = 256, 1.5, 1024, 1.4
"""Tiles of fewer pixels, and of more than the first cache holds, take so many times longer."""


@dataclass(frozen=True, slots=True)
class FftPlan:
    """Sizes of a tile, and what the run-time numbers behind the geometry in the struct Sizes of conv_fft.c.j2 say."""

    down: int
    across: int
    pitch: int
    points: int
    tiles: int
    chunk_tiles: int
    weight_elements: int
    data_elements: int
    product_elements: int

    @property
    def scratch_elements(self) -> int:
        """Vectors that a thread transforms at once."""
        return 2 * self.down * self.pitch


@dataclass(frozen=True, slots=True)
class FftParts:
    """A problem taken apart for a target: its geometry along the last two axes, register tiles, plan and threads."""

    conv: ConvProblem
    geometry: Geometry
    tile: GemmTile
    plan: FftPlan
    threads: int

    @property
    def scratch_bytes(self) -> int:
        """Of all threads."""
        return self.threads * self.plan.scratch_elements * self.tile.vector_bytes

    @property
    def numbers(self) -> tuple[int, ...]:
        """The first 15 run-time numbers: the geometry as it is read, the threads, and tiles at once."""
        geometry, backward = self.geometry, self.conv.kind is Kind.DGRAD
        pads = [size - 1 - pad if backward else pad for pad, size in zip(geometry.pad[1:], geometry.kernel[1:], strict=True)]
        return (geometry.batch, geometry.groups, geometry.rows, geometry.channels, *geometry.inside[1:], *geometry.outside[1:],
                *geometry.kernel[1:], *pads, int(geometry.flip != backward), self.threads, self.plan.chunk_tiles)


def fft_parts(problem: Problem, target: Target) -> FftParts:
    """The parts of a problem that `refuse_fft` lets through."""
    conv, whole, tile = conv_parts(problem, target)
    geometry = flat(whole)
    assert geometry is not None, "refuse() has let a third axis through"
    return FftParts(conv, geometry, tile, make_plan(geometry, tile), max(target.threads, 1) if conv.flops >= PARALLEL_FLOPS else 1)


def refuse_fft(problem: Problem, target: Target) -> str | None:
    """Why a convolution of the right kind and dtypes is none for Fourier transforms."""
    if config.conv.fft == "off":
        return "the setting conv.fft is 'off'"
    conv, whole, tile = conv_parts(problem, target)
    geometry = flat(whole)
    if geometry is None:
        return f"it transforms along one or two axes, not {conv.spec.ndim}"
    if set(conv.spec.stride + conv.spec.dilation) != {1}:
        return f"it takes no stride and no dilation, unlike {conv}"
    if geometry.taps < LEAST_TAPS:
        return f"it takes kernels of {LEAST_TAPS} taps or more, not {geometry.taps}"
    if geometry.groups > 1 and min(geometry.rows, geometry.channels) < tile.lanes // 2:
        return f"{geometry.channels} channels to {geometry.rows} in a group are too few for its vectors"
    spec = conv.spec
    if any(pad >= size for pad, size in zip(spec.pad_lo + spec.pad_hi, 2 * conv.w_shape[2:], strict=True)):
        return f"the padding {spec.pad_lo}, {spec.pad_hi} makes results of nothing but zeros, which would be rounded"
    if choose_tile(geometry, tile) is None:
        return f"kernels of {geometry.kernel[1]}x{geometry.kernel[2]} are larger than its tiles"
    return None


def flat(geometry: Geometry) -> Geometry | None:
    """The same convolution along the last two axes, a long one last; None where three axes have more than one element or tap.

    An axis without extent (size, result and kernel 1) is moved to the front, where nothing is transformed.
    """
    def at(number: int) -> tuple[int, int, int]:
        return geometry.inside[number], geometry.outside[number], geometry.kernel[number]

    order = sorted(range(3), key=lambda number: at(number) != (1, 1, 1))
    if at(order[0]) != (1, 1, 1):
        return None

    def moved(triple: Triple) -> Triple:
        return triple[order[0]], triple[order[1]], triple[order[2]]

    return replace(geometry, inside=moved(geometry.inside), outside=moved(geometry.outside), kernel=moved(geometry.kernel),
                   stride=moved(geometry.stride), dilation=moved(geometry.dilation), pad=moved(geometry.pad))


def choose_tile(geometry: Geometry, tile: GemmTile) -> tuple[int, int] | None:
    """The sizes of tiles with the least expected work; None where kernels are larger than any."""
    kernel = geometry.kernel[1:]
    sizes = [(down, across) for across in _ACROSS for down in _DOWN
             if across > kernel[1] and across >= tile.lanes and down * across <= _MOST_PIXELS
             and (down == 1) == (kernel[0] == 1) and (down > kernel[0] or down == 1)]
    return min(sizes, key=lambda size: _cost(geometry, size, tile), default=None)


def _cost(geometry: Geometry, size: tuple[int, int], tile: GemmTile) -> float:
    cycles, products = work_of(geometry, plan_of(geometry, size, tile), tile)
    return cycles + products / (2 * tile.lanes * PRODUCT_SHARE)


def make_plan(geometry: Geometry, tile: GemmTile) -> FftPlan:
    """Tiles of the best size, as many at once as a part of the third cache holds."""
    size = choose_tile(geometry, tile)
    assert size is not None, "refuse() has let a large kernel through"
    return plan_of(geometry, size, tile)


def plan_of(geometry: Geometry, size: tuple[int, int], tile: GemmTile) -> FftPlan:
    """The plan for tiles of a size."""
    down, across = size
    steps = (down - geometry.kernel[1] + 1, across - geometry.kernel[2] + 1)
    tiles = max(1, geometry.batch * math.prod(-(-out // step) for out, step in zip(geometry.outside[1:], steps, strict=True)))
    points, panels = down * (across // 2 + 1), -(-geometry.rows // tile.lanes)
    data_step = 4 * tile.lanes * -(-geometry.channels // (2 * tile.lanes))
    each = points * (data_step + panels * tile.columns)
    parts = -(-tiles * each * tile.itemsize // _CHUNK_BYTES)
    chunk = -(-tiles // max(1, min(parts, tiles)))
    return FftPlan(down, across, across + (down > 1), points, tiles, chunk,
                   points * panels * 2 * geometry.channels * tile.columns, points * chunk * data_step,
                   points * chunk * panels * tile.columns)


def work_of(geometry: Geometry, plan: FftPlan, tile: GemmTile) -> tuple[float, float]:
    """Cycles of all transforms, and multiply-adds of all products."""
    pairs = -(-geometry.channels // (2 * tile.lanes)) + -(-geometry.rows // (2 * tile.lanes))
    cycles = geometry.groups * plan.tiles * pairs * transform_cycles(plan)
    panels = -(-geometry.rows // tile.lanes)
    products = geometry.groups * plan.points * plan.tiles * panels * tile.columns * 2 * geometry.channels
    return cycles, products


def transform_cycles(plan: FftPlan) -> float:
    """Cycles to transform a tile of one complex vector of channels, in either direction."""
    pixels = plan.down * plan.across
    factor = _SMALL_FACTOR if pixels < _SMALL_PIXELS else _LARGE_FACTOR if pixels > _LARGE_PIXELS else 1.0
    return factor * PIXEL_CYCLES * pixels * math.log2(pixels)
