"""Convolutions on CUDA cores as an implicit matrix product: any float dtype, rank, stride, dilation, padding and group count.

It is the kernel that takes every problem; where tensor cores, a depthwise kernel or cuDNN do better, they are chosen before it.
"""
from __future__ import annotations

import math
from typing import cast

from ...graph import Op
from ...ops.convolution import Conv
from ...ops.spec import Kind
from ...target import Target
from ..conv_common import Geometry, conv_problem, make_geometry, minimal_bytes
from ..conv_epilogue import epilogue_suffix
from ..helpers import SUFFIXES
from ..implementation import AnyImplementation
from ..kernel import Problem
from ..scalar_printer import load, storage_type, stored
from .conv_depthwise import DEPTHWISE
from .conv_depthwise_last import DEPTHWISE_LAST
from .conv_epilogue import cuda_epilogue
from .conv_small import SMALL
from .conv_tensor import ConvTensor
from .conv_tensor_wgrad import ConvTensorFilters
from .kernel import WORKSPACE, CudaImplementation, CudaKernel, LaunchPlan, Scalar
from .printing import render_cuda
from .rates import LAUNCH_SECONDS, gpu_rates
from .tiles import TILE

_DTYPES = ("float16", "bfloat16", "float32", "float64")
_MOST_GRID = 65535  # of y and z
_MOST_ELEMENTS = 2**31 - 1  # of one image, of the filters of a group: what 32-bit numbers in the kernel count
_BLOCKS_WANTED = 264        # two for each multiprocessor of a large GPU: below this WGRAD splits its pixels
_LEAST_PIXELS = 256         # of a split
_CORES_SHARE = 0.3          # of what CUDA cores do at most: each step gathers, then reads shared memory twice for 16 products


class ConvImplicitGemm(CudaImplementation):
    """Filters times patches that are gathered on the way, sums in the accumulator's dtype, epilogue before the store."""

    name = "conv_implicit_gemm"

    def refuse(self, problem: Problem, target: Target) -> str | None:
        """Only the limits of the grid and of 32-bit counts."""
        op, conv = cast(Conv, problem.op), conv_problem(problem)
        if op.layout is not None:
            return "it takes plain tensors only"
        if conv.dtype not in _DTYPES:
            return f"it computes {', '.join(_DTYPES)}, not {conv.dtype}"
        geometry = make_geometry(conv)
        if conv.epilogue and conv.kind is Kind.WGRAD:
            return "filter gradients have no epilogue"
        if geometry.groups > _MOST_GRID:
            return f"it takes up to {_MOST_GRID} groups, not {geometry.groups}"
        if geometry.rows > _MOST_GRID * TILE.rows:
            return f"it takes up to {_MOST_GRID * TILE.rows} channels of the result in a group, not {geometry.rows}"
        if _columns(conv.kind, geometry) > _MOST_ELEMENTS * TILE.columns:
            return f"a grid has no more than {_MOST_ELEMENTS} blocks in a row"
        largest = max(math.prod(geometry.inside), math.prod(geometry.outside), geometry.channels * geometry.taps, geometry.rows)
        return f"an image plane or filter of {largest} elements" if largest > _MOST_ELEMENTS else None

    def estimate(self, problem: Problem, target: Target) -> float:
        """Launches, then the slower of memory and the busiest multiprocessor's tiles at a share of what CUDA cores do."""
        conv, rates = conv_problem(problem), gpu_rates(target.arch)
        if problem.outputs[0].size == 0:
            return LAUNCH_SECONDS
        geometry = make_geometry(conv)
        is_filters = conv.kind is Kind.WGRAD
        splits, depth = (_splits(geometry), geometry.pixels) if is_filters else (1, geometry.channels * geometry.taps)
        blocks = -(-_columns(conv.kind, geometry) // TILE.columns) * -(-geometry.rows // TILE.rows) * geometry.groups * splits
        flops = 2 * TILE.rows * TILE.columns * -(-blocks // rates.multiprocessors) * rates.multiprocessors * depth / splits
        parts = 2 * 4 * splits * problem.outputs[0].size if splits > 1 else 0
        seconds = max(flops / (_CORES_SHARE * rates.core_flops(conv.accumulator)), minimal_bytes(problem) / rates.memory)
        return LAUNCH_SECONDS * (1 + (splits > 1)) + seconds + parts / rates.memory

    def build(self, problem: Problem, target: Target) -> LaunchPlan:
        """One launch; for WGRAD with few filters and many pixels one over parts of the pixels, then one that sums the parts."""
        conv = conv_problem(problem)
        if problem.outputs[0].size == 0:
            return LaunchPlan(())
        geometry = make_geometry(conv)
        if conv.kind is Kind.WGRAD:
            return _filter_gradient(problem, geometry, conv.flops)
        blocks = (-(-geometry.pixels // TILE.columns), -(-geometry.rows // TILE.rows), geometry.groups)
        positions = (0, 1, 2, *range(1 + cast(Conv, problem.op).n_core_inputs, 1 + len(problem.inputs)))
        kernel = CudaKernel(_name(problem), _source(problem, 1), blocks, (TILE.threads, 1, 1), positions, _numbers(geometry))
        return LaunchPlan((kernel,), flops=conv.flops, bytes=minimal_bytes(problem))


def _filter_gradient(problem: Problem, geometry: Geometry, flops: int) -> LaunchPlan:
    splits = _splits(geometry)
    elements = problem.outputs[0].size
    blocks = (-(-geometry.channels * geometry.taps // TILE.columns), -(-geometry.rows // TILE.rows), geometry.groups * splits)
    scalars = (*_numbers(geometry), Scalar("int32", splits))
    source, name = _source(problem, splits), _name(problem) + ("_split" if splits > 1 else "")
    first = CudaKernel(name, source, blocks, (TILE.threads, 1, 1), (WORKSPACE if splits > 1 else 0, 1, 2), scalars)
    if splits == 1:
        return LaunchPlan((first,), flops=flops, bytes=minimal_bytes(problem))
    itemsize = 8 if _sum_type(problem) == "double" else 4
    total = CudaKernel(name + "_sum", source, (min(-(-elements // 256), 1024), 1, 1), (256, 1, 1), (0, WORKSPACE),
                       (Scalar("int64", elements), Scalar("int32", splits)))
    return LaunchPlan((first, total), itemsize * elements * splits, flops=flops, bytes=minimal_bytes(problem))


def _columns(kind: Kind, geometry: Geometry) -> int:
    """Columns of a group's product."""
    return geometry.channels * geometry.taps if kind is Kind.WGRAD else geometry.pixels


def _splits(geometry: Geometry) -> int:
    """In how many parts the pixels are summed, so that a large GPU is full; limited by the grid and by what a part is worth."""
    blocks = -(-geometry.channels * geometry.taps // TILE.columns) * -(-geometry.rows // TILE.rows) * geometry.groups
    wanted = min(-(-_BLOCKS_WANTED // blocks), geometry.pixels // _LEAST_PIXELS, _MOST_GRID // geometry.groups)
    return max(1, wanted)


def _numbers(geometry: Geometry) -> tuple[Scalar, ...]:
    return tuple(Scalar("int32", number) for number in geometry.numbers)


def _sum_type(problem: Problem) -> str:
    conv = conv_problem(problem)
    return "double" if conv.spec.accumulator(conv.dtype) == "float64" else "float"


def _name(problem: Problem) -> str:
    conv = conv_problem(problem)
    sums = "_sum64" if _sum_type(problem) == "double" and conv.dtype != "float64" else ""
    return f"sc_conv_{conv.kind.value}_implicit_gemm_{SUFFIXES[conv.dtype]}{sums}{epilogue_suffix(problem)}"


def _source(problem: Problem, splits: int) -> str:
    conv, op = conv_problem(problem), cast(Conv, problem.op)
    sums, is_split = _sum_type(problem), splits > 1
    opened, closed = load(conv.dtype, "@").split("@")
    rounded = load(conv.dtype, f"({storage_type(conv.dtype)}){stored(conv.dtype, 'sum[i][j]')}")
    epilogue = cuda_epilogue(problem)
    value = epilogue.value
    if conv.kind is Kind.WGRAD:
        value = "sum[i][j]" if is_split else stored(conv.dtype, "sum[i][j]")
    kind = conv.kind.value
    return render_cuda(
        "conv_implicit_gemm.cu.j2", title=f"{kind} of {conv.dtype} as an implicit matrix product{op.epilogue or ''}",
        name=_name(problem) + ("_split" if is_split else ""), kind=kind, tile=TILE, type=storage_type(conv.dtype), sum_type=sums,
        result_type=sums if is_split else storage_type(problem.outputs[0].dtype), operands=epilogue.operands, load_open=opened,
        load_close=closed, rounded=rounded, epilogue_lines=epilogue.lines, epilogue_value=value, is_split=is_split,
        total=stored(conv.dtype, "sum"))


IMPLEMENTATIONS: dict[type[Op], tuple[AnyImplementation, ...]] = {
    Conv: (*DEPTHWISE, *DEPTHWISE_LAST, *SMALL, ConvTensor(), ConvTensorFilters(), ConvImplicitGemm())}
