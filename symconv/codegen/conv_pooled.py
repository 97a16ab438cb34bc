"""WGRAD and DGRAD of a convolution in front of max pooling: one element of each window of the response has a number.

An image lies in a patch of its own, channels last, with its padding, so that what a row of taps reads or writes of it is one run of
vectors.  WGRAD keeps the sums of one filter in registers while it goes through the windows of an image; DGRAD keeps those of one
pixel of the response, and goes through the filters whose maximum that pixel is.
"""
from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

from ..graph import Op
from ..ops.conv_problem import ConvProblem
from ..ops.lowered.pooled_convolution import PooledConv
from ..ops.spec import Kind
from ..target import Target
from .conv_common import align
from .gemm_tile import PARALLEL_FLOPS, START_SECONDS, GemmTile, compute_seconds, make_tile
from .implementation import Implementation
from .kernel import Kernel, Problem
from .templates import render_kernel

_TASKS = 8
"""Tasks that there should be at least; also the most slices of the batch, each of which has sums of its own."""
_PATCH_BYTES = 256 << 10
_CLOSE_BYTES = 48 << 10
"""A patch at most (it is to stay in the second cache), and up to where it stays in the first one nearly."""
_EFFICIENCY = {Kind.WGRAD: 0.65, Kind.DGRAD: 0.55}
_MORE_FOR_ALIGNED = 1.2
_INDEX_BYTES = 4


@dataclass(frozen=True, slots=True)
class Run:
    """Some of the vectors that a filter's taps take of a patch: `start` and its places (row of taps, elements behind its start)."""

    start: int
    places: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class PooledPlan:
    """The sizes of a problem and how its loops are cut."""

    conv: ConvProblem
    window: tuple[int, ...]
    tile: GemmTile

    @property
    def step(self) -> int:
        """Elements from one pixel of a patch to the next: the channels, or those rounded up to whole vectors."""
        channels, lanes = self.conv.x_shape[1], self.tile.lanes
        padded = -(-channels // lanes) * lanes
        if self.conv.kind is Kind.DGRAD or self._row_vectors(padded) <= _MORE_FOR_ALIGNED * self._row_vectors(channels):
            return padded
        return channels

    def _row_vectors(self, step: int) -> int:
        return -(-self.conv.w_shape[3] * step // self.tile.lanes)

    @property
    def row_vectors(self) -> int:
        """Vectors that a row of taps takes."""
        return self._row_vectors(self.step)

    @property
    def sums(self) -> int:
        """Elements of all vectors of one filter."""
        return self.conv.w_shape[2] * self.row_vectors * self.tile.lanes

    @property
    def patch_size(self) -> tuple[int, int]:
        """Height and width of an image with its padding."""
        spec, x = self.conv.spec, self.conv.x_shape
        return x[2] + spec.pad_lo[0] + spec.pad_hi[0], x[3] + spec.pad_lo[1] + spec.pad_hi[1]

    @property
    def patch(self) -> int:
        """Elements of a patch, and of what the last vectors read behind it."""
        elements = math.prod(self.patch_size) * self.step + self.tile.lanes
        return align(elements * self.tile.itemsize) // self.tile.itemsize

    @property
    def pooled(self) -> tuple[int, int]:
        """Windows along both axes."""
        y = self.conv.y_shape
        return y[2] // self.window[0], y[3] // self.window[1]

    def runs(self) -> Iterator[Run]:
        """The vectors in groups that fit into the registers; for DGRAD a group lies in one row of taps."""
        most = self.tile.rows * 2 + 3  # all registers but one
        rows, width = self.conv.w_shape[2], self.row_vectors
        every = [(row, vector * self.tile.lanes) for row in range(rows) for vector in range(width)]
        spans = [every] if self.conv.kind is Kind.WGRAD else [every[row * width:(row + 1) * width] for row in range(rows)]
        start = 0
        for span in spans:
            count = -(-len(span) // most)
            for part in range(count):
                places = span[part * len(span) // count:(part + 1) * len(span) // count]
                yield Run(start, tuple(places))
                start += len(places)

    @property
    def multiplications(self) -> int:
        """Products of vectors in all, counted in elements."""
        return self.conv.x_shape[0] * self.conv.w_shape[0] * math.prod(self.pooled) * self.sums


class _PooledGradient(Implementation):
    """What both have in common."""

    kind = Kind.WGRAD

    def serves(self, op: Op) -> bool:
        """One kind."""
        return isinstance(op, PooledConv) and op.conv.kind is self.kind

    def refuse(self, problem: Problem, target: Target) -> str | None:
        """Only two axes, one group, no dilation, float32 and float64, and images that stay in the second cache."""
        op, dtype = cast(PooledConv, problem.op), problem.inputs[0].dtype
        spec = op.conv.spec
        if dtype not in ("float32", "float64") or spec.accumulator(dtype) != dtype:
            return f"it sums float32 and float64 as they are, not {dtype} in {spec.accumulator(dtype)}"
        if spec.ndim != 2 or spec.groups != 1 or set(spec.dilation) != {1}:
            return f"it takes two axes, one group, no dilation, not {spec}"
        plan = make_plan(problem, target)
        nbytes = plan.patch * plan.tile.itemsize
        return f"an image of {nbytes >> 10} kB does not stay in the second cache" if nbytes > _PATCH_BYTES else None

    def estimate(self, problem: Problem, target: Target) -> float:
        """A share of the peak, half of it where images lie in the second cache, and what is packed."""
        plan = make_plan(problem, target)
        share = _EFFICIENCY[self.kind] * (1.0 if plan.patch * plan.tile.itemsize <= _CLOSE_BYTES else 0.5)
        packed = (plan.conv.x_shape[0] * plan.patch + plan.conv.w_shape[0] * plan.sums * _TASKS) * plan.tile.itemsize
        return (START_SECONDS + compute_seconds(2 * plan.multiplications, plan.tile.dtype, target, share)
                + 3 * target.copy_seconds(packed, working_set=0))

    def _kernel(self, problem: Problem, plan: PooledPlan, numbers: tuple[int, ...], workspace: int) -> Kernel:
        conv, spec = plan.conv, plan.conv.spec
        name = f"sc_conv_{self.kind.value}_behind_pool_{plan.tile.suffix}"
        lines, line = (conv.x_shape[2], conv.x_shape[3])
        if plan.patch_size[1] == line:
            lines, line = min(lines, 1), lines * line
        sizes = {"lines": lines, "line": line,
                 "channels": conv.x_shape[1], "height": conv.x_shape[2], "width": conv.x_shape[3], "taps_high": conv.w_shape[2],
                 "taps_wide": conv.w_shape[3], "top": spec.pad_lo[0], "left": spec.pad_lo[1], "step": plan.step,
                 "patch_width": plan.patch_size[1], "patch": plan.patch, "down": spec.stride[0], "right": spec.stride[1],
                 "window_high": plan.window[0], "window_wide": plan.window[1], "pooled_high": plan.pooled[0],
                 "pooled_wide": plan.pooled[1], "sums": plan.sums, "row_sums": plan.row_vectors * plan.tile.lanes}
        source = render_kernel(f"conv_pooled_{self.kind.value}.c.j2", function=name, tile=plan.tile, sizes=sizes,
                               runs=tuple(plan.runs()), flip=spec.flip, problem=str(problem.op))
        flops = 2 * conv.x_shape[0] * math.prod(plan.pooled) * math.prod(conv.w_shape)
        return Kernel(name, source, numbers, workspace, flops=flops,
                      bytes=sum(operand.nbytes for operand in problem.inputs + problem.outputs))


class PooledWgrad(_PooledGradient):
    """Filter gradients: for each filter the patches at its maxima, times what the pooling received for them."""

    name = "conv_wgrad_behind_pool"
    kind = Kind.WGRAD

    def build(self, problem: Problem, target: Target) -> Kernel:
        """The kernel; its workspace holds the sums of every slice of the batch, then each thread's patch and offsets."""
        plan = make_plan(problem, target)
        batch, filters = plan.conv.x_shape[0], plan.conv.w_shape[0]
        slices = max(1, min(batch, _TASKS))
        blocks = max(1, min(-(-_TASKS // slices), filters))
        partial = align(slices * filters * plan.sums * plan.tile.itemsize)
        scratch = plan.patch * plan.tile.itemsize + align(_INDEX_BYTES * math.prod(plan.pooled))
        numbers = (batch, filters, slices, blocks, target.threads, int(2 * plan.multiplications < PARALLEL_FLOPS), partial, scratch)
        return self._kernel(problem, plan, numbers, partial + scratch * target.threads)


class PooledDgrad(_PooledGradient):
    """Image gradients: for each pixel of the response the filters whose maximum it is, times what the pooling received."""

    name = "conv_dgrad_behind_pool"
    kind = Kind.DGRAD

    def build(self, problem: Problem, target: Target) -> Kernel:
        """The kernel; its workspace holds the filters in runs, then each thread's patch and its lists of filters for pixels."""
        plan = make_plan(problem, target)
        batch, filters = plan.conv.x_shape[0], plan.conv.w_shape[0]
        packed = align(filters * plan.sums * plan.tile.itemsize)
        pixels = math.prod(plan.pooled) * math.prod(plan.window)
        lists = align(pixels * _INDEX_BYTES) + align(pixels * filters * 2 * plan.tile.itemsize)  # a factor and a filter's number
        scratch = plan.patch * plan.tile.itemsize + lists
        numbers = (batch, filters, target.threads, int(2 * plan.multiplications < PARALLEL_FLOPS), packed, scratch)
        return self._kernel(problem, plan, numbers, packed + scratch * target.threads)


def make_plan(problem: Problem, target: Target) -> PooledPlan:
    """The plan of a problem."""
    op, (first, *_) = cast(PooledConv, problem.op), problem.inputs
    shapes = (first.shape, problem.outputs[0].shape)
    x_shape, w_shape = shapes if op.conv.kind is Kind.WGRAD else shapes[::-1]
    spec = op.conv.spec.resolved(x_shape[2:], w_shape[2:])
    conv = ConvProblem(op.conv.kind, spec, x_shape, w_shape, first.dtype, first.dtype)
    return PooledPlan(conv, op.pool.window, make_tile(first.dtype, target))


IMPLEMENTATIONS: dict[type[Op], tuple[Implementation, ...]] = {PooledConv: (PooledWgrad(), PooledDgrad())}
