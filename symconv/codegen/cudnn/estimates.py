"""How long cuDNN may take, before anything is measured: a roofline with what is commonly seen of its kernels.

These are expectations, not measurements of ours: parts of the peak that large convolutions reach on recent GPUs.  They rank cuDNN
against the generated kernels, which are estimated from nominal peaks too; `config.selection = "measure"` settles it.
"""
from __future__ import annotations

import math

from ...ops.conv_problem import ConvProblem
from ...ops.spec import Kind
from .devices import DeviceProperties
from .fusion import Fusion
from .support import Requirements, choose_layout

LAUNCH_SECONDS = 4e-6
_BANDWIDTH = 0.8  # of the peak, that kernels reach
_PARTS = {Kind.FPROP: 0.65, Kind.DGRAD: 0.6, Kind.WGRAD: 0.5}  # of the peak of tensor cores
_PLAIN_PART = 0.75  # of the peak of the other cores
_DEPTHWISE_PART = 0.25  # of the bandwidth, and of the plain cores: cuDNN has few kernels for one channel in a group
_TILE = 128


def estimate(problem: ConvProblem, gpu: DeviceProperties, fusion: Fusion, requirements: Requirements) -> float:
    """Expected seconds: the slower of arithmetic and memory, conversions of layout, and the launches."""
    layout = choose_layout(problem, gpu, fusion)
    launches = 1 if layout.conversion_seconds == 0 else 3
    seconds = max(_arithmetic(problem, gpu, requirements), _memory(problem, gpu, fusion))
    return seconds + layout.conversion_seconds / _BANDWIDTH + launches * LAUNCH_SECONDS


def _arithmetic(problem: ConvProblem, gpu: DeviceProperties, requirements: Requirements) -> float:
    if _is_depthwise(problem):
        return problem.flops / (gpu.flops_per_second("float64" if problem.dtype == "float64" else "float32") * _DEPTHWISE_PART)
    on_tensor_cores = problem.dtype in ("float16", "bfloat16") or (problem.dtype == "float32" and requirements.tf32)
    part = _PARTS[problem.kind] if on_tensor_cores else _PLAIN_PART
    gemm = problem.gemm
    wasted = (_rounded(gemm.m, 32) * _rounded(gemm.n, 32) * _rounded(gemm.k, 16)) / (gemm.m * gemm.n * gemm.k)
    tiles = math.ceil(gemm.m / _TILE) * math.ceil(gemm.n / _TILE) * gemm.batch
    if problem.kind is Kind.WGRAD:  # its long sums are split over the multiprocessors
        tiles *= max(1, min(gemm.k // 1024, gpu.processors // tiles))
    busy = tiles / (math.ceil(tiles / gpu.processors) * gpu.processors)
    return problem.flops * wasted / (gpu.flops_per_second(problem.dtype, requirements.tf32) * part * busy)


def _memory(problem: ConvProblem, gpu: DeviceProperties, fusion: Fusion) -> float:
    result = math.prod(problem.result_shape)
    operands = sum(place == "full" for place in fusion.places())
    itemsize = problem.bytes / (math.prod(problem.x_shape) + math.prod(problem.w_shape) + math.prod(problem.y_shape))
    part = _DEPTHWISE_PART if _is_depthwise(problem) else _BANDWIDTH
    return (problem.bytes + operands * result * itemsize) / (gpu.bytes_per_second * part)


def _is_depthwise(problem: ConvProblem) -> bool:
    return problem.w_shape[1] == 1 and problem.spec.groups > 1


def _rounded(size: int, step: int) -> int:
    return -(-size // step) * step
