"""What both convolutions on tensor cores share: reasons to refuse, estimates, tensors made ready, and what templates are told."""
from __future__ import annotations

from typing import cast

from ... import dtypes
from ...config import config
from ...ops.convolution import Conv
from ...target import Target
from ..conv_common import Geometry, conv_problem, minimal_bytes
from ..helpers import SUFFIXES
from ..kernel import Problem
from ..scalar_printer import storage_type
from .conv_geometry import LARGEST_INT32, ConvGeometry, refuse_blocks_of_channels, span
from .conv_tensor_packing import Factor, packing_kernel
from .conv_tensor_tiles import DEPTH_BYTES, VECTOR_BYTES, ConvTile
from .kernel import CudaKernel, workspace_part
from .rates import LAUNCH_SECONDS, GpuRates

_LEAST_ARCH = {"float16": 75, "bfloat16": 80, "float32": 80}
_MMA = {"float16": "sc_mma_m16n8k16_f16", "bfloat16": "sc_mma_m16n8k16_bf16", "float32": "sc_mma_m16n8k8_tf32"}
_SLAB_BYTES = 16 * (64 + 8) * 4  # of a warp, at most: 16 rows on their way to memory
_MOST_SIZE = 2**29               # of an axis, stride or padding: twice as much is still an int32


def suffix(dtype: str) -> str:
    """A dtype in names of kernels: what tensor cores make of it."""
    return "tf32" if dtype == "float32" else SUFFIXES[dtype]


def shared_bytes(tile: ConvTile, stages: int) -> int:
    """Dynamic shared memory of a block: its steps, or its warps' results on their way out."""
    return max(stages * tile.stage_bytes, tile.threads // 32 * _SLAB_BYTES)


def refuse_tensor_cores(problem: Problem, target: Target) -> str | None:
    """Why tensor cores cannot run the problem: layout, dtype, what sums are taken in, architecture, precision."""
    op, conv = cast(Conv, problem.op), conv_problem(problem)
    blocks = refuse_blocks_of_channels(op)
    if blocks is not None:
        return blocks
    least = _LEAST_ARCH.get(conv.dtype)
    if least is None or conv.accumulator != "float32":
        return f"tensor cores have no {conv.dtype} with sums in {conv.accumulator}"
    if target.arch < least:
        return f"{conv.dtype} on tensor cores needs sm_{least}, the device has sm_{target.arch}"
    if conv.dtype == "float32" and config.precision != "tf32":
        return 'float32 means float32 (config.precision = "tf32" allows tensor cores)'
    if conv.spec.groups > 1 and conv.w_shape[1] == 1:
        return "groups of one channel leave tensor cores nothing to do"
    sizes = (*conv.x_shape, *conv.w_shape, *conv.y_shape, *conv.spec.stride, *conv.spec.dilation, *conv.spec.pad_lo)
    return f"an axis, stride or padding of {max(sizes)}" if max(sizes) >= _MOST_SIZE else None


def refuse_blocks(blocks: int) -> str | None:
    """Why a launch of so many blocks is none."""
    return f"{blocks} blocks are more than a grid has, {LARGEST_INT32}" if blocks > LARGEST_INT32 else None


def product_seconds(problem: Problem, factors: tuple[Factor, ...], seconds: float, rates: GpuRates) -> float:
    """A product that takes so many seconds in its multiprocessors, with its packing, launches and memory."""
    packing = sum(LAUNCH_SECONDS + factor.moved_bytes / rates.memory for factor in factors if not factor.is_ready)
    return packing + LAUNCH_SECONDS + max(seconds, minimal_bytes(problem) / rates.memory)


def pack(factors: tuple[Factor, ...]) -> tuple[tuple[CudaKernel, ...], tuple[int, ...]]:
    """The launches that pack what is not ready of the inputs from 0 on, and the buffers of all then.

    What is packed goes to parts of the workspace, in order.
    """
    launches: list[CudaKernel] = []
    buffers = []
    for number, factor in enumerate(factors):
        buffers.append(1 + number if factor.is_ready else workspace_part(len(launches)))
        if not factor.is_ready:
            launches.append(packing_kernel(factor, 1 + number, buffers[-1]))
    return tuple(launches), tuple(buffers)


def packed_sizes(factors: tuple[Factor, ...]) -> list[int]:
    """Bytes of the workspace's parts that `pack` writes."""
    return [factor.packed_bytes for factor in factors if not factor.is_ready]


def image_factor(problem: Problem, geometry: ConvGeometry) -> Factor:
    """The tensor that is gathered."""
    sizes = geometry.sizes
    step = geometry.first.channel * sizes.channels
    return Factor(problem.inputs[0].dtype, sizes.groups, sizes.batch, sizes.inside, sizes.channels, geometry.first, step)


def image_reach(image: Factor, sizes: Geometry) -> int:
    """How far from an image's start the kernel counts, padding and the rest of a tile included."""
    beyond = (2 * sizes.pad[a] + sizes.kernel[a] * sizes.dilation[a] + sizes.stride[a] + sizes.inside[a] for a in range(3))
    return span((image.groups, image.outer), (image.group_step, image.strides.outer)) + sum(
        size * abs(step) for size, step in zip(beyond, image.strides.spatial, strict=True)) + image.channels


def tile_context(dtype: str, tile: ConvTile, stages: int, index: str, is_whole: bool) -> dict[str, object]:
    """What both templates are told of dtype and tile."""
    itemsize = dtypes.itemsize(dtype)
    return {"tile": tile, "stages": stages, "type": storage_type(dtype), "offset_type": index, "is_whole": is_whole,
            "vector": VECTOR_BYTES // itemsize,
            "depth": DEPTH_BYTES // itemsize, "is_half": itemsize == 2, "mma": _MMA[dtype]}
