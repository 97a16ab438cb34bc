"""Convolutions on CUDA cores as an implicit matrix product: any float dtype, rank, stride, dilation, padding and group count.

It is the kernel that takes every problem; where tensor cores, a depthwise kernel or cuDNN do better, they are chosen before it.
"""
from __future__ import annotations

import math
from typing import cast

from ...graph import Op
from ...ops.convolution import Conv
from ...ops.epilogue import CHANNEL
from ...ops.spec import Kind
from ...target import Target
from ..conv_common import Geometry, conv_problem, epilogue_suffix, make_geometry, minimal_bytes
from ..helpers import SUFFIXES
from ..implementation import AnyImplementation
from ..kernel import Problem
from ..scalar_printer import load, storage_type, stored
from .kernel import WORKSPACE, CudaImplementation, CudaKernel, LaunchPlan, Scalar
from .printing import print_cuda_program, render_cuda
from .tiles import TILE

_DTYPES = ("float16", "bfloat16", "float32", "float64")
_MOST_GRID_Z = 65535
_MOST_ELEMENTS = 2**31 - 1  # of one image, of the filters of a group: what 32-bit numbers in the kernel count
_BLOCKS_WANTED = 264        # two for each multiprocessor of a large GPU: below this WGRAD splits its pixels
_LEAST_PIXELS = 256         # of a split


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
        if geometry.groups > _MOST_GRID_Z:
            return f"it takes up to {_MOST_GRID_Z} groups, not {geometry.groups}"
        largest = max(math.prod(geometry.inside), math.prod(geometry.outside), geometry.channels * geometry.taps, geometry.rows)
        return f"an image plane or filter of {largest} elements" if largest > _MOST_ELEMENTS else None

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


def _splits(geometry: Geometry) -> int:
    """In how many parts the pixels are summed, so that a large GPU is full; limited by the grid and by what a part is worth."""
    blocks = -(-geometry.channels * geometry.taps // TILE.columns) * -(-geometry.rows // TILE.rows) * geometry.groups
    wanted = min(-(-_BLOCKS_WANTED // blocks), geometry.pixels // _LEAST_PIXELS, _MOST_GRID_Z // geometry.groups)
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
    operands, lines, value = _epilogue(problem)
    if conv.kind is Kind.WGRAD:
        value = "sum[i][j]" if is_split else stored(conv.dtype, "sum[i][j]")
    kind = conv.kind.value
    return render_cuda(
        "conv_implicit_gemm.cu.j2", title=f"{kind} of {conv.dtype} as an implicit matrix product{op.epilogue or ''}",
        name=_name(problem) + ("_split" if is_split else ""), kind=kind, tile=TILE, type=storage_type(conv.dtype), sum_type=sums,
        result_type=sums if is_split else storage_type(problem.outputs[0].dtype), operands=operands, load_open=opened,
        load_close=closed, rounded=rounded, epilogue_lines=lines, epilogue_value=value, is_split=is_split,
        total=stored(conv.dtype, "sum"))


def _epilogue(problem: Problem) -> tuple[tuple[dict[str, str], ...], tuple[str, ...], str]:
    """The epilogue's operands as parameters, its statements over `value`, and the expression that is stored."""
    op, dtype = cast(Conv, problem.op), problem.inputs[0].dtype
    if op.epilogue is None:
        return (), (), stored(dtype, "value")
    operands, names = [], ["value"]
    for number, (place, each) in enumerate(zip(op.epilogue.operands, op.epilogue.program.inputs[1:], strict=True)):
        operands.append({"type": storage_type(each), "name": f"operand_{number}"})
        names.append(load(each, f"operand_{number}[{'channel' if place == CHANNEL else 'place'}]"))
    printed = print_cuda_program(op.epilogue.program, names)
    return tuple(operands), printed.lines, stored(op.epilogue.dtype, printed.outputs[0])


IMPLEMENTATIONS: dict[type[Op], tuple[AnyImplementation, ...]] = {Conv: (ConvImplicitGemm(),)}
