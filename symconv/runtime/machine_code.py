"""Machine code for a GPU, made on any machine: the cubins of generated kernels and cuDNN's plans, for files of saved functions.

A cubin is named by a digest of what it was made from (source, header, options, architecture), a plan by what cuDNN was asked.  So a
function that is compiled again from the same expressions finds its own code, and what does not fit is compiled anew.
"""
from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..codegen.cuda.cubin import read_resources
from ..codegen.cuda.kernel import CudaKernel, CudnnLaunch, Launch, LaunchPlan
from ..codegen.cuda.nvrtc import compile_kernel, kernel_key
from ..codegen.cudnn.devices import DeviceProperties
from ..codegen.cudnn.implementation import CudnnConvolution, plan_version
from ..codegen.cudnn.plans import CudnnPlan
from ..errors import ArgumentError, BackendError, InternalError, explain_error
from ..target import Target
from .step import Step

NOTE = "machine code from the file"


@dataclass
class MachineCode:
    """Cubins by `kernel_key`, plans by `Asked.key`. `gpu` are the figures of the GPU that they are for, as cuDNN's JSON;
    `cudnn` the version that made the plans (empty: there are none)."""

    gpu: str
    cudnn: str = ""
    cubins: dict[str, bytes] = field(default_factory=dict)
    plans: dict[str, bytes] = field(default_factory=dict)

    @property
    def architecture(self) -> int:
        """Of the GPU that it is for."""
        return DeviceProperties.parse(self.gpu).architecture

    def add(self, other: MachineCode) -> None:
        """Take over what another function, or another program, needs on the same GPU."""
        self.cudnn = self.cudnn or other.cudnn
        self.cubins.update(other.cubins)
        self.plans.update(other.plans)

    def __str__(self) -> str:
        return f"{len(self.cubins)} kernels and {len(self.plans)} plans of cuDNN for {DeviceProperties.parse(self.gpu)}"


def make_machine_code(steps: Iterable[Step], target: Target) -> MachineCode:
    """The machine code of all steps.

    Raises:
        BackendError: there is no NVRTC here, or it does not take a kernel.
    """
    code = MachineCode(target.gpu)
    for step in steps:
        for launch in step.kernel.launches if isinstance(step.kernel, LaunchPlan) else ():
            if isinstance(launch, CudaKernel):
                code.cubins[kernel_key(launch.source, target.arch)] = compile_kernel(launch.source, target.arch)
            else:
                key, version = _plan_key(step, target)
                code.plans[key], code.cudnn = launch.plan.to_bytes(), version
    return code


def _plan_key(step: Step, target: Target) -> tuple[str, str]:
    if step.choice is None or not isinstance(step.choice.implementation, CudnnConvolution):
        raise InternalError(f"the step {step.name} runs a plan of cuDNN that was not chosen")
    return step.choice.implementation.asked(step.choice.problem, target).key, plan_version(target)


def fitting(code: MachineCode, target: Target) -> MachineCode:
    """The part of machine code that a target can run; a warning says what cannot and why: that is compiled anew."""
    made_for = DeviceProperties.parse(code.gpu)
    if made_for.architecture != target.arch:
        warnings.warn(explain_error(f"the file's machine code is for {made_for}", f"a GPU of sm_{target.arch}: kernels and plans "
                                    "of cuDNN are made anew", f'compile with target="sm_{target.arch}" to save code for it'),
                      stacklevel=4)
        return MachineCode(code.gpu)
    reason = _other_plans(code, made_for, target)
    if reason:
        warnings.warn(explain_error("the file's plans of cuDNN are not used", f"{reason}: they are made anew"), stacklevel=4)
        return replace(code, plans={})
    return code


def _other_plans(code: MachineCode, made_for: DeviceProperties, target: Target) -> str:
    """Why the plans are not for this GPU and cuDNN; empty where they are (or where there are none)."""
    if not code.plans:
        return ""
    here = DeviceProperties.parse(target.gpu) if target.gpu else None
    if here is None or (here.name, here.processors) != (made_for.name, made_for.processors):
        return f"they are for {made_for} with {made_for.processors} multiprocessors, here is {here or 'a GPU without figures'}"
    version = plan_version(target)
    return "" if version == code.cudnn else f"they are of cuDNN {code.cudnn}, here is {version or 'none'}"


def use_cubins(steps: Sequence[Step], code: MachineCode, arch: int) -> None:
    """Give the launches of steps their cubins, where they are there."""
    for step in steps:
        if isinstance(step.kernel, LaunchPlan):
            launches = tuple(_with_cubin(launch, code, arch) for launch in step.kernel.launches)
            if launches != step.kernel.launches:
                step.kernel = replace(step.kernel, launches=launches, notes=(*step.kernel.notes, NOTE))


def _with_cubin(launch: Launch, code: MachineCode, arch: int) -> Launch:
    if isinstance(launch, CudnnLaunch):
        return launch
    cubin = code.cubins.get(kernel_key(launch.source, arch))
    return launch if cubin is None else replace(launch, cubin=cubin)


def plans_by_key(code: MachineCode) -> dict[str, CudnnPlan]:
    """The plans, read."""
    return {key: CudnnPlan.from_bytes(data) for key, data in code.plans.items()}


def encode_machine_code(code: MachineCode) -> tuple[dict[str, Any], list[bytes]]:
    """Machine code as plain data, and the blobs whose numbers it names, each with its digest."""
    blobs: list[bytes] = []
    document: dict[str, Any] = {"gpu": code.gpu, "cudnn": code.cudnn}
    for kind, found in (("cubins", code.cubins), ("plans", code.plans)):
        document[kind] = {}
        for key, data in found.items():
            document[kind][key] = [len(blobs), hashlib.sha256(data).hexdigest()]
            blobs.append(data)
    return document, blobs


def decode_machine_code(document: Any, blob: Any) -> MachineCode:
    """The machine code of plain data; `blob` gives bytes by number. Everything is checked, nothing is run.

    Raises:
        ArgumentError: it is damaged.
    """
    code = MachineCode(DeviceProperties.parse(str(document["gpu"])).text, str(document["cudnn"]))
    for kind, found in (("cubins", code.cubins), ("plans", code.plans)):
        for key, (number, digest) in document[kind].items():
            data = blob(int(number))
            if hashlib.sha256(data).hexdigest() != digest:
                raise ArgumentError(explain_error("machine code in the file is damaged", f"{kind}, number {number}"))
            found[str(key)] = data
    _check(code)
    return code


def _check(code: MachineCode) -> None:
    try:
        for cubin in code.cubins.values():
            read_resources(cubin)
        plans_by_key(code)
    except (BackendError, InternalError) as error:
        raise ArgumentError(explain_error("machine code in the file is damaged", str(error))) from None
