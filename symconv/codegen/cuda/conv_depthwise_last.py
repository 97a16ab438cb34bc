"""Depthwise convolutions on CUDA with channels last: lanes along the channels, each thread a few channels of a few pixels.

Neighbouring channels of a pixel lie together, so every access is a vector and a warp reads whole lines of memory; nothing is shared
but the filters.  An element is loaded once for all results and taps of its thread that meet it.  The taps are written out.
"""
from __future__ import annotations

import math
from dataclasses import dataclass
from typing import cast

from ... import dtypes
from ...graph import Op
from ...ops.convolution import Conv
from ...ops.layout import CHANNELS_LAST, Layout
from ...ops.spec import Kind
from ...target import Target
from ..conv_common import conv_problem, make_geometry, minimal_bytes
from ..conv_epilogue import epilogue_suffix
from ..helpers import SUFFIXES
from ..kernel import Problem
from ..scalar_printer import load, storage_type, stored
from .conv_direct import refuse_direct
from .conv_direct_plan import Cut, plan_axis, power_of_two, products_of, taps_text
from .conv_epilogue import cuda_epilogue
from .kernel import WORKSPACE, CudaImplementation, CudaKernel, LaunchPlan, Scalar
from .printing import render_cuda
from .rates import LAUNCH_SECONDS, gpu_rates

_THREADS = 128
_COLUMNS = 4            # results beside each other of one thread
_SUMS = {2: 32, 4: 32, 8: 16}  # of results, or of taps in WGRAD, that a thread has registers for; by the bytes of an element
_WGRAD_SUMS = 52
_WIDEST, _FEW_TAPS = 4, 9  # channels of a thread; with more taps than a few only two: what is loaded takes registers too
_SHARE = 0.25           # of what CUDA cores do
_MOST_NUMBER = 2**31 - 1
_BLOCKS_WANTED = 528    # a few for each multiprocessor of a large GPU: below this WGRAD splits its pixels
_LAYOUT = Layout(CHANNELS_LAST, CHANNELS_LAST)


@dataclass(frozen=True, slots=True)
class Lanes:
    """Threads along the channels, each with `vector` of them."""

    vector: int
    across: int

    @property
    def channels(self) -> int:
        """Channels of a block."""
        return self.vector * self.across


class ChannelsLast:
    """One kernel in the making."""

    def __init__(self, problem: Problem) -> None:
        self.problem, self.conv = problem, conv_problem(problem)
        self.geometry, self.kind = make_geometry(self.conv), self.conv.kind
        self.sum_dtype = "float64" if self.conv.accumulator == "float64" else "float32"
        self.sum_type = "double" if self.sum_dtype == "float64" else "float"
        spread = self.geometry.stride[1:] if self.kind is Kind.DGRAD else (1, 1)
        rows, columns = spread[0], max(_COLUMNS if self.kind is not Kind.WGRAD else _COLUMNS // 2, spread[1])
        self.lanes = self._lanes(rows * columns)
        positions = _THREADS // self.lanes.across
        across = min(positions, power_of_two(-(-self.geometry.outside[2] // columns)))
        self.cut = Cut(across, positions // across, 1, rows, columns)
        self.rows = plan_axis(self.geometry, self.kind, 1, rows, self.cut.down)
        self.columns = plan_axis(self.geometry, self.kind, 2, columns, across)

    def _lanes(self, results: int) -> Lanes:
        """Vectors of up to 16 bytes that divide the channels, and as many threads as there are of them, up to a warp."""
        channels, itemsize = self.geometry.groups, dtypes.itemsize(self.conv.dtype)
        sums = self.geometry.taps if self.kind is Kind.WGRAD else results
        most = _WGRAD_SUMS if self.kind is Kind.WGRAD else _SUMS[dtypes.itemsize(self.sum_dtype)]
        vector = min(16 // itemsize, _WIDEST if self.geometry.taps <= _FEW_TAPS else 2)
        while vector > 1 and (channels % vector or vector * sums > most):
            vector //= 2
        return Lanes(vector, min(32, power_of_two(-(-channels // vector))))

    @property
    def tiles(self) -> tuple[int, int, int]:
        """Blocks along the channels, down and across an image of results."""
        _, height, width = self.geometry.outside
        return (-(-self.geometry.groups // self.lanes.channels), -(-height // (self.cut.down * self.cut.rows)),
                -(-width // (self.cut.across * self.cut.columns)))

    @property
    def blocks(self) -> int:
        """Blocks of FPROP and DGRAD."""
        return self.geometry.batch * math.prod(self.tiles)

    def seconds(self, target: Target) -> float:
        """Memory traffic, or the products (those of idle threads too) where they take longer."""
        rates, (channels, down, across) = gpu_rates(target.arch), self.tiles
        _, height, width = self.geometry.outside
        room = channels * self.lanes.channels * down * self.cut.down * self.cut.rows * across * self.cut.across * self.cut.columns
        filled = room / max(1, self.geometry.groups * height * width)
        launches = 2 if self.kind is Kind.WGRAD else 1
        return launches * LAUNCH_SECONDS + max(self.conv.flops * filled / (_SHARE * rates.core_flops(self.sum_dtype)),
                                               minimal_bytes(self.problem) / rates.memory)

    def name(self) -> str:
        """The kernel's name: what it makes, which taps are written out, how it is cut."""
        sums = "_sum64" if self.sum_dtype == "float64" and self.conv.dtype != "float64" else ""
        return (f"sc_conv_{self.kind.value}_depthwise_last_{SUFFIXES[self.conv.dtype]}{sums}_{taps_text(self.geometry)}"
                f"_c{self.lanes.across}x{self.lanes.vector}_t{self.cut.across}x{self.cut.down}_v{self.cut.rows}x{self.cut.columns}"
                f"{epilogue_suffix(self.problem)}")

    def numbers(self) -> tuple[Scalar, ...]:
        """The run-time sizes."""
        return tuple(Scalar("int32", number) for number in (
            self.geometry.batch, self.geometry.groups, *self.geometry.inside[1:], *self.geometry.outside[1:], *self.tiles))

    def context(self) -> dict[str, object]:
        """What both templates are filled in with."""
        opened, closed = load(self.conv.dtype, "@").split("@")
        return {"cut": self.cut, "lanes": self.lanes, "row_plan": self.rows, "column_plan": self.columns, "threads": _THREADS,
                "kind": self.kind.value, "taps": self.geometry.taps, "type": storage_type(self.conv.dtype),
                "sum_type": self.sum_type, "load_open": opened, "load_close": closed,
                "products": products_of(self.rows, self.columns, self.cut, self.geometry.kernel[2])}

    def plan(self) -> LaunchPlan:
        """The launch of FPROP or DGRAD."""
        name, epilogue = self.name(), cuda_epilogue(self.problem)
        rounded = load(self.conv.dtype, f"({storage_type(self.conv.dtype)}){stored(self.conv.dtype, 'sum[i][lane]')}")
        source = render_cuda("conv_depthwise_last.cu.j2", title=f"{self.conv}", name=name, operands=epilogue.operands,
                             epilogue_lines=epilogue.lines, epilogue_value=epilogue.value, rounded=rounded,
                             result_type=storage_type(self.problem.outputs[0].dtype), **self.context())
        positions = (0, 1, 2, *range(1 + cast(Conv, self.problem.op).n_core_inputs, 1 + len(self.problem.inputs)))
        kernel = CudaKernel(name, source, (self.blocks, 1, 1), (_THREADS, 1, 1), positions, self.numbers())
        return LaunchPlan((kernel,), flops=self.conv.flops, bytes=minimal_bytes(self.problem))

    def wgrad_plan(self) -> LaunchPlan:
        """The launches of WGRAD: parts of the pixels, then their sum in order."""
        channels, down, across = self.tiles
        units, elements, dtype = self.geometry.batch * down * across, self.problem.outputs[0].size, self.conv.dtype
        splits, name = max(1, min(-(-_BLOCKS_WANTED // channels), units)), self.name()
        source = render_cuda("conv_depthwise_last_wgrad.cu.j2", title=f"{self.conv}", name=name, total=stored(dtype, "total"),
                             **self.context())
        first = CudaKernel(name, source, (channels * splits, 1, 1), (_THREADS, 1, 1), (WORKSPACE, 1, 2),
                           (*self.numbers(), Scalar("int32", splits)))
        total = CudaKernel(name + "_sum", source, (min(-(-elements // _THREADS), 1024), 1, 1), (_THREADS, 1, 1), (0, WORKSPACE),
                           (Scalar("int64", elements), Scalar("int32", splits)))
        return LaunchPlan((first, total), dtypes.itemsize(self.sum_dtype) * elements * splits, flops=self.conv.flops,
                          bytes=minimal_bytes(self.problem))


class CudaConvDepthwiseLast(CudaImplementation):
    """FPROP and DGRAD."""

    name = "conv_depthwise_last_cuda"

    def serves(self, op: Op) -> bool:
        """FPROP and DGRAD in other layouts than the plain one."""
        return isinstance(op, Conv) and op.kind is not Kind.WGRAD and op.layout is not None

    def refuse(self, problem: Problem, target: Target) -> str | None:
        """Only one filter for each channel, channels last, rank 1 or 2, at most 49 taps, strides 1 and 2."""
        return _refuse(problem)

    def estimate(self, problem: Problem, target: Target) -> float:
        """Memory traffic, or the products where they take longer."""
        return ChannelsLast(problem).seconds(target)

    def build(self, problem: Problem, target: Target) -> LaunchPlan:
        """One launch; none for an empty result."""
        return ChannelsLast(problem).plan() if problem.outputs[0].size else LaunchPlan(())


class CudaConvWgradDepthwiseLast(CudaImplementation):
    """WGRAD: sums for each tap in registers, pixels in parts, parts added in order by a second launch."""

    name = "conv_wgrad_depthwise_last_cuda"

    def serves(self, op: Op) -> bool:
        """WGRAD in other layouts than the plain one."""
        return isinstance(op, Conv) and op.kind is Kind.WGRAD and op.layout is not None

    def refuse(self, problem: Problem, target: Target) -> str | None:
        """Only one filter for each channel, channels last, rank 1 or 2, at most 49 taps, strides 1 and 2."""
        return _refuse(problem)

    def estimate(self, problem: Problem, target: Target) -> float:
        """Memory traffic, or the products where they take longer; two launches."""
        return ChannelsLast(problem).seconds(target)

    def build(self, problem: Problem, target: Target) -> LaunchPlan:
        """Two launches; none for an empty result."""
        return ChannelsLast(problem).wgrad_plan() if problem.outputs[0].size else LaunchPlan(())


def _refuse(problem: Problem) -> str | None:
    conv = conv_problem(problem)
    filters, per_group = conv.w_shape[:2]
    if per_group != 1 or filters != conv.spec.groups:
        return f"it takes one filter for each channel, not {filters} filters of {per_group} channels in {conv.spec.groups} groups"
    reason = refuse_direct(problem, _LAYOUT)
    if reason is not None:
        return reason
    blocks = ChannelsLast(problem).blocks
    return f"{blocks} blocks are more than a grid has, {_MOST_NUMBER}" if blocks > _MOST_NUMBER else None


DEPTHWISE_LAST: tuple[CudaImplementation, ...] = (CudaConvDepthwiseLast(), CudaConvWgradDepthwiseLast())
