"""Functions for a GPU that is not here (`compile(…, device="cuda", target="sm_90")`): made, looked at and saved, not run."""
from __future__ import annotations

from typing import Any

from ..codegen.cudnn.devices import DeviceProperties
from ..errors import BackendError, explain_error
from ..graph import FunctionGraph
from ..target import Target
from .devices.find import ALIGNMENT
from .function import Function
from .machine_code import MachineCode, make_machine_code
from .memory import MemoryPlan
from .planned import PlannedProgram
from .prepare import place_kept
from .schedule import Schedule


class CrossProgram(PlannedProgram):
    """A program whose machine code has been made. `code` holds it."""

    def __init__(self, graph: FunctionGraph, schedule: Schedule, memory: MemoryPlan) -> None:
        super().__init__(graph, schedule, memory)
        place_kept(self.steps, ALIGNMENT)
        self.code = make_machine_code(self.steps, schedule.target)

    def launching(self) -> tuple[str, ...]:
        """Nothing is launched; what was made."""
        return (f"not on this machine: {self.code} are made",)


class CrossFunction(Function):
    """A function for a GPU that is not here. `prepare` makes programs; `save` writes them with their machine code."""

    def __init__(self, *given: Any, target: Target, aim: str) -> None:
        super().__init__(*given)
        self.gpu = DeviceProperties.parse(target.gpu)
        self.aim = aim

    def _match(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        meant = "" if self.aim.lower() in self.gpu.name.lower() else f", which stands for {self.aim!r}"
        raise BackendError(explain_error(
            f"{self.name} was compiled for {self.gpu}{meant}, and does not run here",
            f"target={self.aim!r}; {len(self.programs)} programs are made",
            "prepare(shapes), then save(path), and sc.load(path) on a machine with that GPU; without target it runs here"))

    def machine_code(self) -> MachineCode:
        """The machine code of all programs that were made."""
        code = MachineCode(self.gpu.text)
        for program in self.programs:
            if isinstance(program, CrossProgram):
                code.add(program.code)
        return code

    def __repr__(self) -> str:
        return f"<symconv function {self.name} for {self.gpu}: {len(self.recipe.inputs)} inputs>"
