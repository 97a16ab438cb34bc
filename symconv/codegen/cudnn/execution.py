"""Running plans: the next one where a plan is refused at execution, and the fastest of several by measurement.

What runs them is a small device interface, so that all of this works the same over CuPy and over a stand-in.
"""
from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from ...errors import BackendError, explain_error
from .plans import CudnnPlan


class PlanRefusedError(BackendError):
    """The device's answer where cuDNN refuses a plan that was built; the text is cuDNN's."""


class PlanDevice(Protocol):
    """What running plans needs of a device. Pointers are addresses in its memory."""

    def allocate(self, nbytes: int) -> int:
        """Workspace of at least so many bytes, aligned to 256; 0 for none. BackendError where there is no memory."""

    def execute(self, plan: CudnnPlan, variant_pack: Mapping[int, int], workspace: int) -> None:
        """Run a plan on pointers by uid (`graph.UID`, `graph.OPERAND_UID`). PlanRefusedError where cuDNN refuses it."""

    def time(self, plan: CudnnPlan, variant_pack: Mapping[int, int], workspace: int) -> float:
        """Seconds of a run, the median of several. PlanRefusedError where cuDNN refuses it."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The plan that ran, and why those before it did not: for `explain()`."""

    plan: CudnnPlan
    refusals: tuple[str, ...] = ()


def run(plans: Iterable[CudnnPlan], device: PlanDevice, variant_pack: Mapping[int, int]) -> Outcome:
    """Run the first plan that cuDNN takes; each is tried once.

    Raises:
        BackendError: after the last; the selection goes on to another kernel.
    """
    refusals: list[str] = []
    for plan in plans:
        try:
            device.execute(plan, variant_pack, device.allocate(plan.workspace_bytes))
        except PlanRefusedError as error:
            refusals.append(f"{plan.engine}: {error}")
            continue
        return Outcome(plan, tuple(refusals))
    raise BackendError(explain_error("cuDNN refused every plan when it ran", "; ".join(refusals) or "there was none"))


def fastest(plans: Iterable[CudnnPlan], device: PlanDevice, variant_pack: Mapping[int, int]) -> Outcome:
    """The plan that a measurement finds fastest (mode "measure"); refused ones are passed over.

    Raises:
        BackendError: where none ran.
    """
    refusals: list[str] = []
    best: tuple[float, CudnnPlan] | None = None
    for plan in plans:
        try:
            seconds = device.time(plan, variant_pack, device.allocate(plan.workspace_bytes))
        except PlanRefusedError as error:
            refusals.append(f"{plan.engine}: {error}")
            continue
        if best is None or seconds < best[0]:
            best = (seconds, plan)
    if best is None:
        raise BackendError(explain_error("cuDNN refused every plan when it ran", "; ".join(refusals) or "there was none"))
    return Outcome(best[1], tuple(refusals))
