"""The `Target` of each device: what rewrites and code generation may ask of it."""
from __future__ import annotations

import ctypes.util
import importlib.util
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

from ..codegen.ceilings import machine_ceilings
from ..codegen.compiler import Compiler, find_compiler, missing_compiler_error
from ..codegen.cuda.rates import LAUNCH_SECONDS, gpu_ceilings
from ..codegen.cudnn.devices import DeviceProperties as GpuFigures
from ..codegen.cudnn.devices import known_device
from ..codegen.kernel import Operand, Problem
from ..codegen.lists import implementations
from ..codegen.threads import default_threads
from ..config import config
from ..errors import ArgumentError, BackendError, explain_error
from ..graph import Op, TensorType
from ..ops.convolution import Conv
from ..ops.epilogue import CHANNEL, Epilogue
from ..ops.lowered.fused_elementwise import FusedElementwise
from ..ops.scalar import ScalarProgram
from ..target import DEFAULT_CEILINGS, Ceilings, Target
from .devices.find import find_device


def make_target(device: str, aim: str | None = None) -> Target:
    """The target of a device name; a BackendError where this machine or this version cannot run it.

    `aim` names a GPU or an architecture ("H200", "sm_90") that need not be on this machine: code for it is made, and not run.
    """
    if aim is not None:
        gpu = aimed_gpu(device, aim)
        return _with_answers(Target("cuda", arch=gpu.architecture, gpu=gpu.text,
                                    find_ceilings=partial(gpu_ceilings, gpu.architecture)))
    if device != "cpu":
        kind = "emulator" if device.startswith("emulator") else "cuda"
        found = find_device(device)
        arch = found.properties.arch
        figures = found.properties.figures or (known_device(f"sm_{arch}").text if kind == "emulator" else "")
        return _with_answers(Target(kind, arch=arch, gpu=figures, place=found.name, find_ceilings=partial(gpu_ceilings, arch)))
    compiler = find_compiler()
    if compiler is None:
        _warn_no_compiler()
    threads = (config.threads or default_threads()) if compiler is not None and compiler.has_openmp else 1
    width, registers = _vectors(compiler)
    return _with_answers(Target("cpu", compiler is not None, width, threads, vector_registers=registers,
                                find_ceilings=_ceilings_finder()))


def _vectors(compiler: Compiler | None) -> tuple[int, int]:
    """Bytes of a vector and vectors that the processor holds, as the compiler uses it."""
    return (compiler.vector_bytes, compiler.vector_registers) if compiler is not None else (16, 16)


def _with_answers(plain: Target) -> Target:
    """The target with what rewrites may ask of it."""
    return replace(plain, refuse_epilogue=partial(_refuse_epilogue, plain),
                   refuse_elementwise=partial(_refuse_elementwise, plain), estimate=partial(_estimate, plain))


def _ceilings_finder() -> Callable[[], Ceilings]:
    """What gives the ceilings of this machine, measured when an estimate first asks; a plan asks a thousand times."""
    known: dict[bool, Ceilings] = {}

    def find() -> Ceilings:
        if config.deterministic not in known:
            compiler = find_compiler()
            known[config.deterministic] = (machine_ceilings(_vectors(compiler)[0]) if compiler is not None
                                           else replace(DEFAULT_CEILINGS, reason="no C compiler was found"))
        return known[config.deterministic]

    return find


def function_target(device: str, options: Mapping[str, Any]) -> Target:
    """The target of a function that was compiled for a device with these options."""
    return make_target(device, options.get("target"))


def aimed_gpu(device: str, aim: str) -> GpuFigures:
    """The GPU that `compile(…, device="cuda", target=aim)` means."""
    if not device.startswith("cuda"):
        raise ArgumentError(explain_error("target names the GPU that code is made for", f"target={aim!r} with device={device!r}",
                                          'compile with device="cuda", or leave target out'))
    return known_device(aim)


def check_cudnn_wanted(target: Target) -> None:
    """With `config.dnn.enabled = True`, a BackendError that says what was looked for where the target runs no cuDNN."""
    if config.dnn.enabled is not True:
        return
    reason = why_not_cudnn(target)
    if reason is None:
        return
    looked = [f"the Python package {name}: {'found' if importlib.util.find_spec(name) else 'not installed'}"
              for name in ("cupy", "cudnn")]
    looked += [f"the library {name}: {ctypes.util.find_library(name) or 'not on the library search path'}"
               for name in ("cuda", "cudnn")]
    raise BackendError(explain_error(f"config.dnn.enabled is True, but cuDNN cannot run: {reason}", "; ".join(looked),
                                     'set config.dnn.enabled = "auto" to take another kernel'))


def why_not_cudnn(target: Target) -> str | None:
    """Why a target runs no cuDNN at all; None where it does."""
    if config.dnn.enabled is False:
        return "config.dnn.enabled is False"
    if target.device == "cpu":
        return "the device is cpu"
    from ..codegen.cudnn.implementation import why_not_on

    return why_not_on(target)


def _refuse_epilogue(target: Target, conv: Conv, input_types: Sequence[TensorType], result: TensorType,
                     epilogue: Epilogue) -> str | None:
    """Why this convolution is not to take this epilogue: nothing runs them together, or cuDNN is faster without it."""
    channels = TensorType(result.dtype, result.shape[1:2])
    extra = [(channels if kind == CHANNEL else result).with_dtype(dtype)
             for kind, dtype in zip(epilogue.operands, epilogue.program.inputs[1:], strict=True)]
    fused = replace(conv, epilogue=epilogue)
    inputs, outputs = [*input_types, *extra], [result.with_dtype(epilogue.dtype)]
    reason = _refuse(target, fused, inputs, outputs)
    if reason is not None or why_not_cudnn(target) is not None:
        return reason
    refusal = _refuse(target, fused, inputs, outputs, only=CUDNN)
    if refusal is None or _refuse(target, conv, input_types, [result], only=CUDNN) is not None:
        return None
    if config.dnn.enabled is True:
        return refusal
    return _faster_apart(target, (fused, inputs, outputs), (conv, list(input_types), [result]), extra)


CUDNN = "cudnn"
_Asked = tuple[Op, list[TensorType], list[TensorType]]


def _faster_apart(target: Target, fused: _Asked, plain: _Asked, extra: Sequence[TensorType]) -> str | None:
    """Why an epilogue that cuDNN does not take is better a kernel of its own; None where it is not."""
    together, alone = _estimate(target, *fused), _estimate(target, *plain)
    if isinstance(together, str) or isinstance(alone, str):
        return None
    nbytes = sum(Operand.contiguous(type.dtype, type.static_shape).nbytes for type in (*fused[2], *plain[2], *extra))
    apart = alone + target.copy_seconds(nbytes) + LAUNCH_SECONDS
    if apart >= together:
        return None
    return (f"cuDNN, which does not take it, is faster with an elementwise kernel behind it: {apart * 1e6:.3g} µs expected, "
            f"fused {together * 1e6:.3g} µs")


def _refuse_elementwise(target: Target, program: ScalarProgram) -> str | None:
    """Why no generated kernel can run this scalar program; None if one can."""
    return _refuse(target, FusedElementwise(program), [TensorType(dtype, (8,)) for dtype in program.inputs],
                   [TensorType(dtype, (8,)) for dtype in program.output_dtypes])


def _estimate(target: Target, op: Op, inputs: Sequence[TensorType], outputs: Sequence[TensorType]) -> float | str:
    """Expected seconds of the fastest generated kernel for an op on contiguous operands, or why there is none."""
    problem = Problem(op, tuple(Operand.contiguous(type.dtype, type.static_shape) for type in inputs),
                      tuple(Operand.contiguous(type.dtype, type.static_shape) for type in outputs))
    asked = [each for each in implementations(type(op), target.device) if each.serves(op)]
    reasons = {each.name: each.refuse(problem, target) for each in asked}
    seconds = [each.estimate(problem, target) for each in asked if reasons[each.name] is None]
    if seconds:
        return min(seconds)
    return "; ".join(f"{name}: {reason}" for name, reason in reasons.items()) or "there is no generated kernel for it"


def _refuse(target: Target, op: Op, inputs: Sequence[TensorType], outputs: Sequence[TensorType],
            only: str = "") -> str | None:
    if not target.has_compiler:
        return "there is no C compiler"
    problem = Problem(op, tuple(Operand.contiguous(type.dtype, type.static_shape) for type in inputs),
                      tuple(Operand.contiguous(type.dtype, type.static_shape) for type in outputs))
    reasons = []
    for each in implementations(type(op), target.device):
        if only and each.name != only:
            continue
        reason = each.refuse(problem, target)
        if reason is None:
            return None
        reasons.append(f"{each.name}: {reason}")
    return "; ".join(reasons) or "there is no generated kernel for it"


@lru_cache(maxsize=1)
def _warn_no_compiler() -> None:
    text = str(missing_compiler_error()).replace("there is no C compiler, which compiled functions need",
                                                 "there is no C compiler: functions run their slow NumPy references")
    warnings.warn(text, stacklevel=5)
