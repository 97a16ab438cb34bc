"""What direct convolution kernels for CUDA share: how planes are cut into blocks of threads, and which element meets which filter.

A block copies a tile of an image plane (or of several small planes) with its border into shared memory, zeros where the image ends.
Each thread makes a few results below each other, for one filter or several: an element is read once for all rows that it meets.
The taps are written out in the source, so it is for one kernel, stride, dilation and padding; batch, channels and sizes are
run-time numbers.  A convolution of rank 1 is one of rank 2 with rows of height 1.
"""
from __future__ import annotations

import math
from dataclasses import replace
from typing import cast

from ... import dtypes
from ...ops.convolution import Conv
from ...ops.layout import Layout
from ...ops.spec import Kind
from ...target import Target
from ..conv_common import conv_problem, make_geometry, minimal_bytes
from ..conv_epilogue import epilogue_suffix
from ..helpers import SUFFIXES
from ..kernel import Problem
from ..scalar_printer import load, storage_type, stored
from .conv_direct_plan import AxisPlan, Cut, Tile, plan_axis, power_of_two, products_of, taps_text
from .conv_epilogue import cuda_epilogue
from .kernel import WORKSPACE, CudaKernel, LaunchPlan, Scalar
from .printing import render_cuda
from .rates import LAUNCH_SECONDS, gpu_rates

DTYPES = ("float16", "bfloat16", "float32", "float64")
THREADS = 128
MOST_TAPS = 49
_MOST_SHARED = (48 << 10) - 3 * 128  # what every GPU gives a kernel that asks for no more; three arrays start on 128 bytes
_GOOD_SHARED = 24 << 10   # with more, few blocks share a multiprocessor
_MOST_NUMBER = 2**31 - 1  # elements of a plane, blocks of a grid
_BLOCKS_WANTED = 528  # a few for each multiprocessor of a large GPU: below this WGRAD splits its pixels


class Direct:
    """One direct kernel in the making: its plan, its text and its numbers."""

    def __init__(self, problem: Problem, filters: int, rows: int) -> None:
        self.problem, self.conv = problem, conv_problem(problem)
        self.geometry = geometry = make_geometry(self.conv)
        self.kind = self.conv.kind
        self.sum_dtype = "float64" if self.conv.accumulator == "float64" else "float32"
        self.sum_type = "double" if self.sum_dtype == "float64" else "float"
        self.cut = self._fitting(filters, rows)
        self.rows, self.columns = self._plans(self.cut)
        self.tile = Tile(self.rows.extent, self.columns.extent, self.columns.step)
        self.chunks = -(-geometry.rows // filters)

    def _fitting(self, filters: int, rows: int) -> Cut:
        """The cut for the sizes of the plane; threads are taken off, then rows, until the tile is small enough."""
        _, height, width = self.geometry.outside
        spread = (1, 1) if self.kind is not Kind.DGRAD else self.geometry.stride[1:]
        rows = -(-max(1, min(rows, height)) // spread[0]) * spread[0]
        across = 8
        while across < (THREADS if height == 1 else 32) and across * spread[1] < width:
            across *= 2
        down = max(1, min(THREADS // across, power_of_two(-(-height // rows))))
        cut = Cut(across, down, THREADS // (across * down), rows, spread[1], filters)
        while self._shared_bytes(cut) > _GOOD_SHARED:
            smaller = self._smaller(cut)
            if smaller is None:
                break
            cut = smaller
        return cut

    @staticmethod
    def _smaller(cut: Cut) -> Cut | None:
        if cut.threads > 32 and cut.planes > 1:
            return replace(cut, planes=cut.planes // 2)
        if cut.threads > 32 and cut.down > 1:
            return replace(cut, down=cut.down // 2)
        if cut.across > 32:
            return replace(cut, across=cut.across // 2)
        return None

    def _plans(self, cut: Cut) -> tuple[AxisPlan, AxisPlan]:
        return (plan_axis(self.geometry, self.kind, 1, cut.rows, cut.down),
                plan_axis(self.geometry, self.kind, 2, cut.columns, cut.across))

    def _shared_bytes(self, cut: Cut) -> int:
        rows, columns = self._plans(cut)
        tile = Tile(rows.extent, columns.extent, columns.step).elements
        sums = max(cut.planes, cut.threads // 32) * self.geometry.taps * cut.filters  # WGRAD adds those of its warps
        return (cut.planes * tile + sums) * dtypes.itemsize(self.sum_dtype) + 8 * cut.planes

    @property
    def shared_bytes(self) -> int:
        """Static shared memory of the kernel."""
        return self._shared_bytes(self.cut)

    @property
    def tiles(self) -> tuple[int, int]:
        """Blocks down and across a plane of results."""
        _, height, width = self.geometry.outside
        return -(-height // (self.cut.down * self.cut.rows)), -(-width // (self.cut.across * self.cut.columns))

    @property
    def planes(self) -> int:
        """Planes that threads share: of images, groups, and filters `cut.filters` at a time."""
        return self.geometry.batch * self.geometry.groups * self.chunks

    @property
    def filled(self) -> float:
        """Results that blocks have room for, to those there are."""
        tiles, (_, height, width) = self.tiles, self.geometry.outside
        room = tiles[0] * self.cut.down * self.cut.rows * tiles[1] * self.cut.across * self.cut.columns
        return room / max(1, height * width) * self.chunks * self.cut.filters / max(1, self.geometry.rows)

    def name(self, word: str) -> str:
        """The kernel's name: what it makes, which taps are written out, how it is cut."""
        sums = "_sum64" if self.sum_dtype == "float64" and self.conv.dtype != "float64" else ""
        cut = f"t{self.cut.across}x{self.cut.down}x{self.cut.planes}_v{self.cut.rows}x{self.cut.filters}"
        return (f"sc_conv_{self.kind.value}_{word}_{SUFFIXES[self.conv.dtype]}{sums}_{taps_text(self.geometry)}_{cut}"
                f"{epilogue_suffix(self.problem)}")

    def numbers(self) -> tuple[Scalar, ...]:
        """The run-time sizes: planes, and what they are of; sizes of a plane read and made; tiles of a plane."""
        geometry = self.geometry
        return tuple(Scalar("int32", number) for number in (
            geometry.batch, geometry.groups, geometry.rows, geometry.channels, *geometry.inside[1:], *geometry.outside[1:],
            *self.tiles))

    def context(self) -> dict[str, object]:
        """What both templates are filled in with."""
        dtype = self.conv.dtype
        opened, closed = load(dtype, "@").split("@")
        return {"cut": self.cut, "tile": self.tile, "row_plan": self.rows, "column_plan": self.columns, "kind": self.kind.value,
                "taps": self.geometry.taps, "type": storage_type(dtype), "sum_type": self.sum_type, "load_open": opened,
                "load_close": closed, "products": products_of(self.rows, self.columns, self.cut, self.geometry.kernel[2]),
                "places": {each: self.tile.place(each) for each, _ in self.columns.uses}}

    def plan(self, word: str) -> LaunchPlan:
        """The launch of FPROP or DGRAD."""
        blocks = -(-self.planes // self.cut.planes) * math.prod(self.tiles)
        name = self.name(word)
        epilogue = cuda_epilogue(self.problem)
        rounded = load(self.conv.dtype, f"({storage_type(self.conv.dtype)}){stored(self.conv.dtype, 'sum[i][f]')}")
        source = render_cuda("conv_direct.cu.j2", title=f"{self.conv}", name=name, operands=epilogue.operands,
                             epilogue_lines=epilogue.lines, epilogue_value=epilogue.value, rounded=rounded,
                             result_type=storage_type(self.problem.outputs[0].dtype), **self.context())
        positions = (0, 1, 2, *range(1 + cast(Conv, self.problem.op).n_core_inputs, 1 + len(self.problem.inputs)))
        kernel = CudaKernel(name, source, (blocks, 1, 1), (self.cut.threads, 1, 1), positions, self.numbers())
        return LaunchPlan((kernel,), flops=self.conv.flops, bytes=minimal_bytes(self.problem))

    def wgrad_plan(self, word: str) -> LaunchPlan:
        """The launch of WGRAD, and where its pixels are in parts one that adds the parts in order."""
        geometry, elements = self.geometry, self.problem.outputs[0].size
        sums = geometry.groups * self.chunks * geometry.channels
        units = -(-geometry.batch // self.cut.planes) * math.prod(self.tiles)
        splits = max(1, min(-(-_BLOCKS_WANTED // sums), units))
        name, is_split = self.name(word) + ("_split" if splits > 1 else ""), splits > 1
        dtype = self.conv.dtype
        source = render_cuda("conv_direct_wgrad.cu.j2", title=f"{self.conv}", name=name, is_split=is_split,
                             result_type=self.sum_type if is_split else storage_type(dtype), total=stored(dtype, "sum"),
                             stored="total" if is_split else stored(dtype, "total"), **self.context())
        first = CudaKernel(name, source, (sums * splits, 1, 1), (self.cut.threads, 1, 1), (WORKSPACE if is_split else 0, 1, 2),
                           (*self.numbers(), Scalar("int32", splits)))
        if not is_split:
            return LaunchPlan((first,), flops=self.conv.flops, bytes=minimal_bytes(self.problem))
        total = CudaKernel(name + "_sum", source, (min(-(-elements // self.cut.threads), 1024), 1, 1),
                           (self.cut.threads, 1, 1), (0, WORKSPACE), (Scalar("int64", elements), Scalar("int32", splits)))
        return LaunchPlan((first, total), dtypes.itemsize(self.sum_dtype) * elements * splits, flops=self.conv.flops,
                          bytes=minimal_bytes(self.problem))


def refuse_direct(problem: Problem, layout: Layout | None = None) -> str | None:
    """What no direct kernel takes: other layouts, dtypes, rank 3, many taps, strides above 2, and sizes beyond 32 bits."""
    op, conv = cast(Conv, problem.op), conv_problem(problem)
    if op.layout != layout:
        return "it takes plain tensors only" if layout is None else "it takes images and responses with their channels last only"
    if conv.kind is Kind.WGRAD and op.epilogue is not None:
        return "filter gradients have no epilogue"
    if conv.dtype not in DTYPES:
        return f"it computes {', '.join(DTYPES)}, not {conv.dtype}"
    if conv.spec.ndim > 2:
        return f"it convolves along one or two axes, not {conv.spec.ndim}"
    geometry = make_geometry(conv)
    if geometry.taps > MOST_TAPS:
        return f"it writes out at most {MOST_TAPS} taps, and the kernel has {geometry.taps}"
    if geometry.taps == 0:
        return "the kernel has no elements"
    if max(geometry.stride) > 2:
        return f"it takes strides 1 and 2, not {max(geometry.stride)}"
    largest = max(math.prod(geometry.inside), math.prod(geometry.outside))
    return f"an image plane of {largest} elements" if largest > _MOST_NUMBER else None


def refuse_cut(direct: Direct) -> str | None:
    """Why the cut of an accepted problem cannot be run: shared memory, or the grid."""
    if direct.shared_bytes > _MOST_SHARED:
        return f"its tile needs {direct.shared_bytes} bytes of shared memory, and a block has {_MOST_SHARED}"
    blocks = direct.planes * math.prod(direct.tiles)
    return f"{blocks} blocks are more than a grid has, {_MOST_NUMBER}" if blocks > _MOST_NUMBER else None


def estimate_direct(direct: Direct, target: Target, share: float, launches: int = 1) -> float:
    """Launches, and what memory takes, or the products (those of idle threads too) at a share of what CUDA cores do."""
    rates = gpu_rates(target.arch)
    seconds = direct.conv.flops * max(1.0, direct.filled) / (share * rates.core_flops(direct.sum_dtype))
    return launches * LAUNCH_SECONDS + max(seconds, minimal_bytes(direct.problem) / rates.memory)

