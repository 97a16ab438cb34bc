"""What cuDNN takes, known without asking it: `refuse`, and the layout that it wants.

The rules were read off the real library (9.28), asked without a GPU about tens of thousands of graphs; `tests/codegen/cudnn`
asks it again.  A bare convolution is taken always, but for bfloat16 before Ampere.  Chains have two kinds of engines: ready-made
ones for FPROP with +bias or +bias and an activation, in both layouts; and engines compiled at run time, for NHWC only, without
the flipped mode and without float64.
"""
from __future__ import annotations

import math
from dataclasses import dataclass

from ... import dtypes
from ...config import config
from ...ops.conv_problem import ConvProblem
from ...ops.layout import CHANNELS_LAST
from ...ops.spec import Kind
from .devices import DeviceProperties
from .fusion import Fusion, parse_fusion
from .graph import NCHW, NHWC

_READY_MADE = {("bias",), ("bias", "relu"), ("bias", "sigmoid"), ("bias", "tanh")}


@dataclass(frozen=True, slots=True)
class Requirements:
    """What plans must keep to: tf32 only when asked, the same bits on every run, a limit for the workspace."""

    tf32: bool = False
    deterministic: bool = False
    workspace_bytes: int = 1 << 30

    @classmethod
    def current(cls) -> Requirements:
        """As the settings say now."""
        return cls(config.precision == "tf32", config.deterministic, config.dnn.workspace_bytes)


def refuse(problem: ConvProblem, device: DeviceProperties, requirements: Requirements | None = None,
           fusion: Fusion | None = None) -> str | None:
    """None where cuDNN takes the problem on the GPU in the layout of `choose_layout`, else the reason why not.

    `fusion` is the chain of the epilogue (default: read from the problem's text).
    """
    wanted = requirements or Requirements.current()
    if 0 in problem.x_shape + problem.w_shape + problem.y_shape:
        return "a tensor has no elements: cuDNN takes no sizes of 0"
    if problem.layout is not None and not {problem.layout.x, problem.layout.y} <= {0, CHANNELS_LAST}:
        return "its tensors lie in blocks of channels"
    if problem.spec.compute_dtype is not None or problem.result_dtype != problem.dtype:
        return "cuDNN is asked only for results of the operands' dtype, summed as usual"
    if problem.dtype == "bfloat16" and not device.has_bfloat16:
        return f"{device} has no bfloat16: cuDNN wants compute capability 8.0"
    chain = parse_fusion(problem.epilogue, problem.dtype) if fusion is None else fusion
    if isinstance(chain, str):
        return chain
    return _refuse_chain(problem, device, wanted, chain)


def _refuse_chain(problem: ConvProblem, device: DeviceProperties, wanted: Requirements, chain: Fusion) -> str | None:
    if not chain.steps or _is_ready_made(problem, chain):
        return None
    if problem.kind is Kind.WGRAD:
        return "filter gradients take no epilogue"
    words = "+" + "+".join(chain.names)
    if problem.dtype == "float64":
        return f"cuDNN fuses no {words} in float64"
    if problem.spec.flip:
        return f"cuDNN fuses {words} with cross-correlation only, not with the flipped kernel"
    if problem.kind is Kind.FPROP and problem.spec.ndim == 3:
        tensor_cores = problem.dtype != "float32" or (wanted.tf32 and device.has_tf32)
        if not tensor_cores:
            return f"cuDNN fuses {words} in three dimensions on tensor cores only, and float32 must stay float32"
        if device.architecture < 80 and problem.spec.groups > 1:
            return f"cuDNN fuses no {words} with groups in three dimensions before compute capability 8.0"
    return None


def _is_ready_made(problem: ConvProblem, chain: Fusion) -> bool:
    return problem.kind is Kind.FPROP and chain.names in _READY_MADE


@dataclass(frozen=True, slots=True)
class LayoutChoice:
    """NCHW or NHWC, why, and what it costs to bring the operands there and the result back where they are NCHW."""

    layout: str
    reason: str
    conversion_seconds: float


def choose_layout(problem: ConvProblem, device: DeviceProperties, fusion: Fusion) -> LayoutChoice:
    """The layout that cuDNN is asked in; a conversion is one reading and one writing at full bandwidth of image and response.

    (Filters are converted by a step of their own, once for each change.)
    """
    layout, reason = wanted_layout(problem, fusion)
    sizes = {"x": math.prod(problem.x_shape), "y": math.prod(problem.y_shape), "w": math.prod(problem.w_shape)}
    converted = [role for role in (*problem.kind.reads[:1], problem.kind.produces, *problem.kind.reads[1:])
                 if layout == NHWC and not (role == "w" and problem.kind is not Kind.WGRAD)
                 and (problem.layout is None or problem.layout.block(role) != CHANNELS_LAST)]
    nbytes = sum(sizes[role] for role in converted) * dtypes.itemsize(problem.dtype)
    return LayoutChoice(layout, reason, 2 * nbytes / device.bytes_per_second)


def wanted_layout(problem: ConvProblem, fusion: Fusion) -> tuple[str, str]:
    """NCHW or NHWC, and why; the same on every GPU."""
    if problem.layout is not None:
        return NHWC, "its tensors lie with channels last"
    if fusion.steps and not _is_ready_made(problem, fusion):
        return NHWC, "cuDNN fuses +" + "+".join(fusion.names) + " for NHWC only"
    if problem.dtype in ("float16", "bfloat16"):
        return NHWC, f"tensor cores multiply {problem.dtype} with channels last"
    return NCHW, f"{problem.dtype} has plans for NCHW, so nothing is converted"
