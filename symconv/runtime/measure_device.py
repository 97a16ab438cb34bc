"""A candidate for a problem on a device with memory of its own, ready to be timed by the device's clock (`measure.py`)."""
from __future__ import annotations

import hashlib
import importlib.metadata
from collections.abc import Sequence
from functools import lru_cache
from importlib import resources
from typing import Any

import numpy as np

from .. import dtypes
from ..codegen.cuda.elementwise import copy_plan
from ..codegen.cuda.kernel import ERROR_FLAG, WORKSPACE, LaunchPlan, workspace_part
from ..codegen.cuda.nvrtc_library import find_nvrtc
from ..codegen.implementation import RefusedError
from ..codegen.kernel import Operand, Problem
from ..config import VERSION, config
from ..errors import InternalError
from ..target import Target
from .devices.find import find_device
from .devices.interface import Action, Device, DeviceMemoryError, Span
from .launching import plan_actions
from .measure import Entrant

Array = np.ndarray[Any, Any]
_CUDNN_PACKAGES = ("nvidia-cudnn-cu13", "nvidia-cudnn-cu12", "nvidia-cudnn-frontend", "cupy-cuda13x", "cupy-cuda12x")
_TRIAL_RUNS = 5
_FOLDERS = ("", "cuda", "cudnn", "templates/cuda")


def device_facts(target: Target) -> dict[str, str]:
    """What times on a device depend on: the device, its software, what generates kernels and what else runs them."""
    properties = find_device(target.place).properties
    nvrtc = find_nvrtc()
    return {"device": properties.name, "architecture": str(properties.arch), "software": properties.software,
            "compiler": "none" if nvrtc is None else f"NVRTC {'.'.join(map(str, nvrtc.version))}",
            "libraries": _libraries(), "kernels": _kernels_digest(), "symconv": VERSION,
            "workspace": f"{config.workspace_bytes}, cuDNN {config.dnn.workspace_bytes}", "precision": config.precision}


@lru_cache(maxsize=1)
def _libraries() -> str:
    found = [(name, each.version) for name in _CUDNN_PACKAGES for each in importlib.metadata.distributions(name=name)]
    return ", ".join(f"{name} {version}" for name, version in found) or "none"


@lru_cache(maxsize=1)
def _kernels_digest() -> str:
    """A digest of all that generates kernels for GPUs: one that was changed is timed anew."""
    digest = hashlib.sha256()
    for part in _FOLDERS:
        folder = resources.files("symconv.codegen").joinpath(part) if part else resources.files("symconv.codegen")
        for file in sorted((each for each in folder.iterdir() if each.is_file()), key=lambda each: each.name):
            digest.update(file.name.encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:16]


class DeviceRun:
    """One candidate with memory of its own on the device. On the emulator it runs without watching."""

    def __init__(self, asked: Problem, entrant: Entrant, target: Target, still: frozenset[int]) -> None:
        self.device: Device = find_device(target.place)
        self._once: list[Action] = []
        self._always: list[Action] = []
        self._kept: list[Span] = []  # whose memory the launches use
        with config.change(emulator__checked=False):
            self._bind(asked, entrant, target, still)

    def _bind(self, asked: Problem, entrant: Entrant, target: Target, still: frozenset[int]) -> None:
        implementation, problem = entrant.implementation, entrant.problem
        outputs = [self._memory(operand.nbytes) for operand in problem.outputs]
        reads = [self._filled(operand, seed) for seed, operand in enumerate(asked.inputs)]
        for position in entrant.copied:
            self._made_by(copy_plan(asked.inputs[position]), position, asked.inputs[position].nbytes, reads, still)
        for preparation in implementation.prepare(problem, target):
            self._made_by(preparation.kernel, preparation.position, preparation.result.nbytes, reads, still)
        self._always += self._fastest_build(entrant, target, [*outputs, *reads])

    def _fastest_build(self, entrant: Entrant, target: Target, operands: Sequence[Span]) -> list[Action]:
        """The launches of what the implementation builds; where it can build several things, of the fastest, whose rank is kept.

        Raises:
            RefusedError: the device refuses them all.
        """
        builds = entrant.implementation.every_build(entrant.problem, target)
        if len(builds) == 1:
            return self._actions(builds[0], operands)
        seconds: dict[int, float] = {}
        reasons: list[str] = []
        for number, each in enumerate(builds):
            try:
                seconds[number] = self._trial_seconds(each, operands)
            except (RefusedError, DeviceMemoryError) as error:
                reasons.append(" ".join(str(error).split()))
        if not seconds:
            raise RefusedError("; ".join(dict.fromkeys(reasons)))
        order = sorted(seconds, key=seconds.__getitem__)
        entrant.implementation.rank(entrant.problem, target, order)
        return self._actions(builds[order[0]], operands)

    def _trial_seconds(self, plan: Any, operands: Sequence[Span]) -> float:
        """The median of three runs, after one that is not counted; its memory is given back."""
        held = len(self._kept)
        try:
            actions = self._actions(plan, operands)
            self.device.run([*self._once, *actions])
            return float(np.median([self.device.time(actions, _TRIAL_RUNS) for _ in range(3)]))
        finally:
            self.device.synchronize()
            del self._kept[held:]

    def _made_by(self, plan: Any, position: int, nbytes: int, reads: list[Span], still: frozenset[int]) -> None:
        """An input in another form, made once where it comes of resting state."""
        place = self._memory(nbytes)
        (self._once if position in still else self._always).extend(self._actions(plan, [place, reads[position]]))
        reads[position] = place

    def _actions(self, plan: Any, operands: Sequence[Span]) -> list[Action]:
        if not isinstance(plan, LaunchPlan):
            raise InternalError("a candidate for a device has a kernel for another one")
        spans = dict(enumerate(operands))
        if plan.errors:
            spans[ERROR_FLAG] = self._memory(4)
            self._once.append(self.device.clearing(spans[ERROR_FLAG]))
        if plan.workspace_bytes:
            whole = self._memory(plan.workspace_bytes)
            spans[WORKSPACE] = whole
            spans.update({workspace_part(number): Span(whole.buffer, first, first + nbytes, first)
                          for number, (first, nbytes) in enumerate(plan.parts)})
        return plan_actions(self.device, plan, spans)

    def _memory(self, nbytes: int) -> Span:
        span = Span.whole(self.device.allocate(nbytes))
        self._kept.append(span)
        return span

    def _filled(self, operand: Operand, seed: int) -> Span:
        """Memory as it would be: normal numbers where it holds floats, else zeros (which are valid indices)."""
        ends = [(size - 1) * stride for size, stride in zip(operand.shape, operand.strides, strict=True)] if operand.size else []
        low, high = sum(min(end, 0) for end in ends), sum(max(end, 0) for end in ends)
        itemsize, count = dtypes.itemsize(operand.dtype), high - low + 1
        whole = self._memory(count * itemsize)
        values = np.zeros(count * itemsize, np.uint8)
        if dtypes.is_float(operand.dtype):
            numbers = np.random.default_rng(seed).standard_normal(4099).astype(dtypes.numpy_dtype(operand.dtype))
            values = np.resize(numbers, count).view(np.uint8)
        self.device.upload(whole.buffer, values)
        return Span(whole.buffer, 0, whole.nbytes, -low * itemsize)

    def warm(self) -> float:
        """Make what is made once, run twice; the seconds of the second run."""
        self.device.run([*self._once, *self._always])
        self.device.synchronize()
        return self.seconds(1)

    def seconds(self, times: int) -> float:
        """The mean of so many runs in a row, by the device's clock."""
        return self.device.time(self._always, times)
