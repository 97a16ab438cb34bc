"""Filter gradients on tensor cores: responses times patches, the pixels that are summed over in parts where there are few filters.

Each part is a launch's block of its own and goes to the workspace; a second kernel adds the parts, always in the same order.
"""
from __future__ import annotations

import math
from dataclasses import dataclass

from ... import dtypes
from ...graph import Op
from ...ops.convolution import Conv
from ...ops.spec import Kind
from ...target import Target
from ..conv_common import conv_problem, minimal_bytes
from ..kernel import Problem
from ..scalar_printer import storage_type, stored
from .conv_geometry import LARGEST_INT32, ConvGeometry, conv_geometry, span
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
from .conv_tensor_packing import Factor, packing_blocks
from .conv_tensor_tiles import DEPTH_BYTES, TILES, ConvTile, Work, possible_splits, split_seconds, transposed_swizzle
from .kernel import CudaImplementation, CudaKernel, LaunchPlan, Scalar, lay_out_parts, workspace_part
from .printing import render_cuda
from .rates import LAUNCH_SECONDS, GpuRates, gpu_rates

_BANKS_BYTES = 128


class ConvTensorFilters(CudaImplementation):
    """WGRAD in tiles of filters and (tap, channel), pixels in parts."""

    name = "conv_tensor_wgrad"

    def serves(self, op: Op) -> bool:
        """WGRAD."""
        return isinstance(op, Conv) and op.kind is Kind.WGRAD

    def takes_strides(self, problem: Problem, position: int) -> bool:
        """Both tensors."""
        return position < 2

    def refuse(self, problem: Problem, target: Target) -> str | None:
        """What the forward kernel refuses, and epilogues."""
        conv = conv_problem(problem)
        if conv.epilogue:
            return "filter gradients have no epilogue"
        reason = refuse_tensor_cores(problem, target)
        if reason is not None or problem.outputs[0].size == 0:
            return reason
        plan = _filter_plan(problem, target)
        if plan.width > LARGEST_INT32:
            return f"filters of {plan.width} elements"
        return refuse_blocks(max(plan.work.blocks(plan.tile), *map(packing_blocks, plan.factors)))

    def estimate(self, problem: Problem, target: Target) -> float:
        """Packing, the product, and adding the parts."""
        if problem.outputs[0].size == 0:
            return LAUNCH_SECONDS
        plan, rates = _filter_plan(problem, target), gpu_rates(target.arch)
        seconds = split_seconds(plan.work, plan.tile, plan.part_bytes, rates, plan.splits)
        return product_seconds(problem, plan.factors, seconds, rates)

    def build(self, problem: Problem, target: Target) -> LaunchPlan:
        """Launches that pack what needs it, the product, and the sum of its parts; none for an empty result."""
        if problem.outputs[0].size == 0:
            return LaunchPlan(())
        plan = _filter_plan(problem, target)
        packing, buffers = pack(plan.factors)
        parts = packed_sizes(plan.factors)
        sums = workspace_part(len(parts)) if plan.splits > 1 else 0
        parts += [plan.part_bytes * plan.splits] if plan.splits > 1 else []
        launches = [*packing, *_product(problem, plan, (sums, *buffers), gpu_rates(target.arch))]
        places, nbytes = lay_out_parts(parts)
        return LaunchPlan(tuple(launches), nbytes, flops=conv_problem(problem).flops, bytes=minimal_bytes(problem), parts=places)


@dataclass(frozen=True, slots=True)
class FilterPlan:
    """WGRAD: its geometry, image and response as factors, the product's sizes for one part of the pixels, the tile, the parts."""

    geometry: ConvGeometry
    factors: tuple[Factor, Factor]
    work: Work
    tile: ConvTile
    splits: int
    share: int

    @property
    def width(self) -> int:
        """Columns: taps times channels in whole vectors."""
        return self.work.columns

    @property
    def is_whole(self) -> bool:
        """Whether the channels of both tensors are whole vectors, once packed."""
        return all(factor.ready().is_whole for factor in self.factors)

    @property
    def part_bytes(self) -> int:
        """Bytes of one part of the sum."""
        sizes = self.geometry.sizes
        return 4 * sizes.groups * sizes.rows * self.width


def _filter_plan(problem: Problem, target: Target) -> FilterPlan:
    """The tile and number of parts that are expected to be fastest together."""
    geometry = conv_geometry(problem)
    sizes, dtype = geometry.sizes, problem.inputs[0].dtype
    response = Factor(dtype, sizes.groups, sizes.batch, sizes.outside, sizes.rows, geometry.second,
                      geometry.second.channel * sizes.rows)
    factors = image_factor(problem, geometry), response
    width, rates = sizes.taps * factors[0].padded, gpu_rates(target.arch)
    depth = DEPTH_BYTES // dtypes.itemsize(dtype)
    steps = math.ceil(sizes.pixels / depth)
    plans: list[tuple[float, int, FilterPlan]] = []
    for tile in filter_tiles(dtypes.itemsize(dtype)):
        blocks = math.ceil(sizes.rows / tile.rows) * math.ceil(width / tile.columns) * sizes.groups
        for wanted in possible_splits(blocks, steps, tile, rates):
            share = max(1, math.ceil(steps / wanted)) * depth
            splits = max(1, math.ceil(sizes.pixels / share))
            work = Work(sizes.rows, width, share / depth, sizes.groups * splits, dtype)
            plan = FilterPlan(geometry, factors, work, tile, splits, share)
            plans.append((split_seconds(work, tile, plan.part_bytes, rates, splits), len(plans), plan))
    return min(plans)[2]


def filter_tiles(itemsize: int) -> list[ConvTile]:
    """The tiles for filter gradients: their rows must fill the banks."""
    return [tile for tile in TILES if min(tile.rows, tile.columns) * itemsize >= _BANKS_BYTES]


def _product(problem: Problem, plan: FilterPlan, buffers: tuple[int, ...], rates: GpuRates) -> tuple[CudaKernel, ...]:
    """The launch of the product, and the one that adds its parts."""
    conv, tile = conv_problem(problem), plan.tile
    ready = plan.factors[0].ready(), plan.factors[1].ready()
    is_split, stages = plan.splits > 1, tile.stages(rates)
    wide = max(image_reach(ready[0], plan.geometry.sizes), ready[1].extent + tile.rows, plan.geometry.sizes.pixels + plan.share,
               span(problem.outputs[0].shape, problem.outputs[0].strides)) > LARGEST_INT32
    words = [suffix(conv.dtype), str(tile), f"{plan.geometry.rank}d", f"{stages}s",
             *(["split"] if is_split else []), *(["wide"] if wide else []), *([] if plan.is_whole else ["part"])]
    name = f"sc_conv_wgrad_tensor_{'_'.join(words)}"
    source = _source(problem, plan, name, stages, "int64_t" if wide else "int32_t")
    first = CudaKernel(name, source, (plan.work.blocks(tile), 1, 1), (tile.threads, 1, 1), buffers, _numbers(plan, ready),
                       shared_bytes(tile, stages))
    if not is_split:
        return (first,)
    blocks = min(-(-plan.part_bytes // (4 * tile.threads)), 16 * rates.multiprocessors)
    return first, CudaKernel(f"{name}_sum", source, (blocks, 1, 1), (tile.threads, 1, 1), (0, buffers[0]), _sum_numbers(plan))


def _numbers(plan: FilterPlan, ready: tuple[Factor, Factor]) -> tuple[Scalar, ...]:
    sizes, result, (image, response) = plan.geometry.sizes, plan.geometry.result, ready
    row_tiles, column_tiles = -(-sizes.rows // plan.tile.rows), -(-plan.width // plan.tile.columns)
    scalars = [Scalar("int32", number) for number in (sizes.batch, sizes.groups, sizes.rows, sizes.channels, row_tiles,
                                                      column_tiles, int(sizes.flip), plan.splits)]
    scalars += [Scalar("int64", number) for number in (plan.share, image.strides.outer, image.group_step, response.strides.outer,
                                                       response.group_step, result.outer, result.channel)]
    for a in plan.geometry.axes:
        scalars += [Scalar("int32", number) for number in (sizes.inside[a], sizes.outside[a], sizes.kernel[a], sizes.stride[a],
                                                           sizes.dilation[a], sizes.pad[a])]
        scalars += [Scalar("int64", step.spatial[a]) for step in (image.strides, response.strides, result)]
    return tuple(scalars)


def _sum_numbers(plan: FilterPlan) -> tuple[Scalar, ...]:
    sizes, result = plan.geometry.sizes, plan.geometry.result
    scalars = [Scalar("int32", number) for number in (sizes.groups, sizes.rows, sizes.channels, plan.splits)]
    scalars += [Scalar("int64", number) for number in (result.outer, result.channel)]
    for a in plan.geometry.axes:
        scalars += [Scalar("int32", sizes.kernel[a]), Scalar("int64", result.spatial[a])]
    return tuple(scalars)


def _source(problem: Problem, plan: FilterPlan, name: str, stages: int, index: str) -> str:
    dtype, is_split = problem.inputs[0].dtype, plan.splits > 1
    itemsize = dtypes.itemsize(dtype)
    return render_cuda("conv_tensor_wgrad.cu.j2", title=f"filter gradient of {suffix(dtype)} on tensor cores", name=name,
                       axes=plan.geometry.axes,
                       left_swizzle=transposed_swizzle(plan.tile.rows, itemsize), is_split=is_split,
                       right_swizzle=transposed_swizzle(plan.tile.columns, itemsize), mma_depth=16 if itemsize == 2 else 8,
                       filter_type=storage_type(dtype), result_type="float" if is_split else storage_type(dtype),
                       total=stored(dtype, "sum"), **tile_context(dtype, plan.tile, stages, index, plan.is_whole))
