"""The generated sources of programs."""
from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..codegen.cuda.kernel import CudaKernel, LaunchPlan
from ..codegen.kernel import Kernel
from .planned import PlannedProgram


def sources_of(programs: Iterable[PlannedProgram]) -> dict[str, str]:
    """The source of every kernel by its name; further texts under one name are numbered."""
    found: dict[str, str] = {}
    for name, text in dict.fromkeys(pair for program in programs for pair in _sources(program)):
        key, number = name, 1
        while key in found:
            number += 1
            key = f"{name} ({number})"
        found[key] = text
    return found


def _sources(program: PlannedProgram) -> Iterator[tuple[str, str]]:
    for step in program.steps:
        if isinstance(step.kernel, Kernel):
            yield step.kernel.name, step.kernel.source
        elif isinstance(step.kernel, LaunchPlan):
            yield from ((launch.name, launch.source) for launch in step.kernel.launches if isinstance(launch, CudaKernel))
