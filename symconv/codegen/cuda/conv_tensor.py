"""Convolutions on tensor cores as implicit matrix products: float16 and bfloat16, and float32 as tf32 where that was asked for.

`ConvTensor` makes images and responses, `ConvTensorFilters` filter gradients (`conv_tensor_wgrad.py`).  Both read tensors whose
channels lie together; others are packed first (`conv_tensor_packing.py`).  The result is written as its operand lies, channels
together or pixels together.
"""
from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, cast

from ... import dtypes
from ...graph import Op
from ...ops.convolution import Conv
from ...ops.epilogue import FULL
from ...ops.spec import Kind
from ...target import Target
from ..conv_common import conv_problem, minimal_bytes
from ..conv_epilogue import epilogue_suffix
from ..kernel import Operand, Preparation, Problem
from ..scalar_printer import load, storage_type, stored
from .conv_epilogue import cuda_epilogue
from .conv_geometry import LARGEST_INT32, ConvGeometry, TensorStrides, conv_geometry, span
from .conv_tensor_common import (
    image_factor,
    image_reach,
    pack,
    packed_sizes,
    product_seconds,
    refuse_blocks,
    refuse_tensor_cores,
    shared_bytes,
    suffix,
    tile_context,
)
from .conv_tensor_packing import Factor, packing_blocks, packing_kernel
from .conv_tensor_tiles import DEPTH_BYTES, TILES, ConvTile, Work, depth_swizzle, possible_splits, split_seconds
from .kernel import CudaImplementation, CudaKernel, LaunchPlan, Scalar, lay_out_parts, workspace_part
from .printing import render_cuda
from .rates import LAUNCH_SECONDS, GpuRates, gpu_rates

_PART_ALIGNMENT = 64  # elements, so that parts of a sum are stored in whole vectors


class ConvTensor(CudaImplementation):
    """FPROP and DGRAD: patches times filters in a pipeline of asynchronous copies, the epilogue before coalesced stores."""

    name = "conv_tensor"

    def serves(self, op: Op) -> bool:
        """FPROP and DGRAD."""
        return isinstance(op, Conv) and op.kind is not Kind.WGRAD

    def takes_strides(self, problem: Problem, position: int) -> bool:
        """Both tensors; of the epilogue's operands those that lie as the result does."""
        return position < 2 or (problem.inputs[position].shape == problem.outputs[0].shape
                                and problem.inputs[position].strides == problem.outputs[0].strides)

    def refuse(self, problem: Problem, target: Target) -> str | None:
        """Dtypes, precision and architectures without such units, other layouts, the limits of the grid."""
        reason = refuse_tensor_cores(problem, target)
        if reason is not None or problem.outputs[0].size == 0:
            return reason
        for number, place in enumerate(_epilogue_places(problem)):
            operand = problem.inputs[cast(Conv, problem.op).n_core_inputs + number]
            if place == FULL and not _lies_alike(operand, problem.outputs[0]):
                return f"the epilogue's operand {number} does not lie as the result does"
        plan = _pixel_plan(problem, target)
        return refuse_blocks(max(plan.work.blocks(plan.tile), *map(packing_blocks, plan.factors)))

    def estimate(self, problem: Problem, target: Target) -> float:
        """Packing, then the slower of memory and the busiest multiprocessor."""
        if problem.outputs[0].size == 0:
            return LAUNCH_SECONDS
        plan, rates = _pixel_plan(problem, target), gpu_rates(target.arch)
        seconds = split_seconds(plan.work, plan.tile, 4 * plan.part_step, rates, plan.splits)
        return product_seconds(problem, plan.factors[:1], seconds, rates)

    def prepare(self, problem: Problem, target: Target) -> tuple[Preparation, ...]:
        """The filters, packed, where they do not lie as they are read."""
        if problem.outputs[0].size == 0:
            return ()
        filters = _pixel_plan(problem, target).factors[1]
        if filters.is_ready:
            return ()
        packing = LaunchPlan((packing_kernel(filters, 1, 0),), bytes=filters.moved_bytes)
        elements = filters.packed_bytes // dtypes.itemsize(filters.dtype)
        return (Preparation(1, cast(Any, packing), Operand.contiguous(filters.dtype, (elements,))),)

    def build(self, problem: Problem, target: Target) -> LaunchPlan:
        """The launch that packs the image where that is needed, the product, and the sum of its parts; none for an empty result."""
        if problem.outputs[0].size == 0:
            return LaunchPlan(())
        plan = _pixel_plan(problem, target)
        packing, buffers = pack(plan.factors[:1])
        parts = packed_sizes(plan.factors[:1])
        sums = workspace_part(len(parts)) if plan.splits > 1 else 0
        parts += [4 * plan.part_step * plan.splits] if plan.splits > 1 else []
        kernels = _pixel_kernels(problem, plan, (sums, buffers[0], 2), gpu_rates(target.arch))
        places, nbytes = lay_out_parts(parts)
        return LaunchPlan((*packing, *kernels), nbytes, flops=conv_problem(problem).flops, bytes=minimal_bytes(problem),
                          parts=places)


@dataclass(frozen=True, slots=True)
class PixelPlan:
    """FPROP or DGRAD: its geometry, image and filters as factors, the product's sizes, its tile, and the parts of its depth.

    `part_step` is from one part of the sum to the next, in elements.
    """

    geometry: ConvGeometry
    factors: tuple[Factor, Factor]
    phases: tuple[int, int, int]
    work: Work
    tile: ConvTile
    splits: int
    part_step: int

    @property
    def is_whole(self) -> bool:
        """Whether the channels that are summed over are whole vectors, once packed."""
        return all(factor.ready().is_whole for factor in self.factors)

    @property
    def row_tiles(self) -> int:
        """Tiles of pixels of one phase and group."""
        return -(-self.work.rows // self.tile.rows)

    @property
    def column_tiles(self) -> int:
        """Tiles of filters."""
        return -(-self.work.columns // self.tile.columns)


def _filter_factor(problem: Problem, geometry: ConvGeometry, forward: bool) -> Factor:
    """The filters, by result channel and tap; for DGRAD turned, so that the filters they came from lie together."""
    sizes, strides = geometry.sizes, geometry.second
    group_step = strides.outer * (sizes.rows if forward else sizes.channels)
    if not forward:
        strides = TensorStrides(strides.channel, strides.outer, strides.spatial)
    return Factor(problem.inputs[1].dtype, sizes.groups, sizes.rows, sizes.kernel, sizes.channels, strides, group_step)


def _pixel_plan(problem: Problem, target: Target) -> PixelPlan:
    geometry = conv_geometry(problem)
    sizes, forward = geometry.sizes, conv_problem(problem).kind is Kind.FPROP
    factors = image_factor(problem, geometry), _filter_factor(problem, geometry, forward)
    phases = (1, 1, 1) if forward else sizes.stride
    pixels = sizes.batch * math.prod(-(-size // phase) for size, phase in zip(sizes.outside, phases, strict=True))
    taps = sizes.taps / math.prod(phases)
    steps = taps * factors[0].padded * dtypes.itemsize(factors[0].dtype) / DEPTH_BYTES
    output, rates, plans = problem.outputs[0], gpu_rates(target.arch), []
    part_step = -(-output.size // _PART_ALIGNMENT) * _PART_ALIGNMENT
    is_whole = span(output.shape, output.strides) + 1 == output.size  # the parts are added element by element
    for number, tile in enumerate(TILES):
        whole = Work(pixels, sizes.rows, steps, sizes.groups * math.prod(phases), problem.inputs[0].dtype)
        for splits in possible_splits(whole.blocks(tile), steps, tile, rates) if is_whole else [1]:
            work = replace(whole, steps=steps / splits, copies=whole.copies * splits)
            plan = PixelPlan(geometry, factors, phases, work, tile, splits, part_step)
            plans.append((split_seconds(work, tile, 4 * part_step, rates, splits), number, splits, plan))
    return min(plans, key=lambda each: each[:3])[3]


def _pixel_kernels(problem: Problem, plan: PixelPlan, buffers: tuple[int, ...], rates: GpuRates) -> tuple[CudaKernel, ...]:
    """The launch of the product, and the one that adds its parts."""
    conv, tile, is_split = conv_problem(problem), plan.tile, plan.splits > 1
    image, filters = (factor.ready() for factor in plan.factors)
    geometry, sizes = plan.geometry, plan.geometry.sizes
    beyond = tile.columns * abs(filters.strides.outer)  # rows of the last tile that are none
    wide = max(image_reach(image, sizes), filters.extent + beyond, _result_reach(problem, plan)) > LARGEST_INT32
    along_channels = geometry.result.channel == 1 and sizes.groups * sizes.rows > 1
    elements = _elements_together(problem, plan, along_channels)
    stages = tile.stages(rates)
    words = [suffix(conv.dtype), str(tile), f"{geometry.rank}d", f"{stages}s", *(["channels"] if along_channels else []),
             *([f"v{elements}"] if elements > 1 else []), *(["wide"] if wide else []), *(["split"] if is_split else []),
             *([] if plan.is_whole else ["part"])]
    name = f"sc_conv_{conv.kind.value}_tensor_{'_'.join(words)}{epilogue_suffix(problem)}"
    source = _pixel_source(problem, plan, name, stages, "int64_t" if wide else "int32_t", along_channels, elements)
    operands = tuple(range(1 + cast(Conv, problem.op).n_core_inputs, 1 + len(problem.inputs)))
    product = CudaKernel(name, source, (plan.work.blocks(tile), 1, 1), (tile.threads, 1, 1),
                         buffers if is_split else (*buffers, *operands), _pixel_numbers(plan, image, filters),
                         shared_bytes(tile, stages))
    if not is_split:
        return (product,)
    numbers = (problem.outputs[0].size, plan.splits, plan.part_step, sizes.groups * sizes.rows, geometry.result.channel)
    blocks = min(-(-problem.outputs[0].size // tile.threads), 16 * rates.multiprocessors)
    return product, CudaKernel(f"{name}_sum", source, (blocks, 1, 1), (tile.threads, 1, 1), (0, buffers[0], *operands), tuple(
        Scalar("int32" if position == 1 else "int64", number) for position, number in enumerate(numbers)))


def _result_reach(problem: Problem, plan: PixelPlan) -> int:
    operand = problem.outputs[0]
    return max(span(operand.shape, operand.strides), plan.row_tiles * plan.tile.rows)


def _elements_together(problem: Problem, plan: PixelPlan, along_channels: bool) -> int:
    """How many elements of the result a lane stores at once: 16 bytes where the result allows it everywhere, else 1."""
    op, geometry = cast(Conv, problem.op), plan.geometry
    types = ["float32"] if plan.splits > 1 else [problem.outputs[0].dtype]
    if op.epilogue is not None and plan.splits == 1:
        types += [dtype for place, dtype in zip(op.epilogue.operands, op.epilogue.program.inputs[1:], strict=True) if place == FULL]
    elements = 16 // max(map(dtypes.itemsize, types))
    sizes, result = geometry.sizes, geometry.result
    if along_channels:
        fits = sizes.rows % elements == 0 and all(step % elements == 0 for step in result.steps)
        return elements if fits else 1
    plane = math.prod(sizes.outside)
    fits = math.prod(plan.phases) == 1 and plane % elements == 0 and problem.outputs[0].is_contiguous
    return elements if fits else 1


def _pixel_numbers(plan: PixelPlan, image: Factor, filters: Factor) -> tuple[Scalar, ...]:
    sizes, result = plan.geometry.sizes, plan.geometry.result
    scalars = [Scalar("int32", number) for number in (sizes.batch, sizes.groups, sizes.rows, sizes.channels, plan.row_tiles,
                                                      plan.column_tiles, int(sizes.flip))]
    scalars += [Scalar("int32", plan.splits), Scalar("int64", plan.part_step)] if plan.splits > 1 else []
    scalars += [Scalar("int64", number) for number in (image.strides.outer, image.group_step, filters.strides.outer,
                                                       filters.group_step, result.outer, result.channel)]
    for a in plan.geometry.axes:
        every = plan.phases[a] // math.gcd(plan.phases[a], sizes.dilation[a])  # of the taps that a phase meets
        scalars += [Scalar("int32", number) for number in (sizes.inside[a], sizes.outside[a], sizes.kernel[a], sizes.stride[a],
                                                           sizes.dilation[a], sizes.pad[a], every)]
        scalars += [Scalar("int64", step.spatial[a]) for step in (image.strides, filters.strides, result)]
    return tuple(scalars)


def _pixel_source(problem: Problem, plan: PixelPlan, name: str, stages: int, index: str, along_channels: bool,
                  elements: int) -> str:
    conv, op, is_split = conv_problem(problem), cast(Conv, problem.op), plan.splits > 1
    title = f"{conv.kind.value} of {suffix(conv.dtype)} on tensor cores{op.epilogue or ''}"
    return render_cuda("conv_tensor.cu.j2", title=title, name=name,
                       kind=conv.kind.value, axes=plan.geometry.axes, depth_swizzle=depth_swizzle(),
                       epilogue=cuda_epilogue(problem, "{}[place]" if is_split else "full_{}.values[e]"), is_split=is_split,
                       result_type=storage_type(problem.outputs[0].dtype), along_channels=along_channels, elements=elements,
                       rounded=load(conv.dtype, f"({storage_type(conv.dtype)}){stored(conv.dtype, 'sum')}"),
                       **tile_context(conv.dtype, plan.tile, stages, index, plan.is_whole))


def _epilogue_places(problem: Problem) -> tuple[str, ...]:
    epilogue = cast(Conv, problem.op).epilogue
    return () if epilogue is None else epilogue.operands


def _lies_alike(operand: Operand, result: Operand) -> bool:
    return operand.strides == result.strides or (operand.is_contiguous and result.is_contiguous)
