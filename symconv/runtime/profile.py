"""Profile: calls, time and memory by step."""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .planned import PlannedProgram

Array = np.ndarray[Any, Any]


@dataclass
class ProgramProfile:
    """What one program has cost so far: calls, seconds in all, seconds of each step."""

    program: PlannedProgram
    calls: int = 0
    seconds: float = 0.0
    step_seconds: Array = field(default_factory=lambda: np.zeros(0))


class Profile:
    """The profile of one function, by program. Empty unless it was compiled with `profile=True`."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.programs: dict[int, ProgramProfile] = {}

    def note(self, program: PlannedProgram, seconds: float, step_seconds: Array) -> None:
        """Add one call of a program, and the seconds of each of its steps."""
        entry = self.programs.get(id(program))
        if entry is None:
            entry = self.programs[id(program)] = ProgramProfile(program, step_seconds=np.zeros(len(program.steps)))
        entry.step_seconds += step_seconds
        entry.seconds += seconds
        entry.calls += 1

    def as_dict(self) -> dict[str, Any]:
        """Plain data: for each program calls, seconds, arena bytes and a row for each step."""
        return {"name": self.name, "programs": [_program_dict(entry) for entry in self.programs.values()]}

    def __str__(self) -> str:
        if not self.programs:
            return f"profile of {self.name}: no calls (compile with profile=True)"
        return "\n".join(_program_text(self.name, entry) for entry in self.programs.values())


def _program_dict(entry: ProgramProfile) -> dict[str, Any]:
    memory = entry.program.memory
    return {"calls": entry.calls, "seconds": entry.seconds, "arena_bytes": memory.arena_bytes,
            "lower_bound_bytes": memory.lower_bound_bytes,
            "steps": [_step_row(entry, number) for number in range(len(entry.program.steps))]}


def _step_row(entry: ProgramProfile, number: int) -> dict[str, Any]:
    step, seconds = entry.program.steps[number], float(entry.step_seconds[number])
    each = seconds / max(entry.calls, 1)
    kernel = step.kernel
    source = step.node.source if step.node is not None else ()
    return {"step": number, "name": step.name, "op": str(step.node.op) if step.node is not None else "copy",
            "seconds": seconds, "share": seconds / max(float(entry.step_seconds.sum()), 1e-30),
            "gflops": kernel.flops / each / 1e9 if kernel is not None and each else 0.0,
            "gbytes": sum(place.operand.nbytes for place in (*step.reads, *step.writes)) / each / 1e9 if each else 0.0,
            "bytes": sum(place.operand.nbytes for place in step.writes),
            "sources": [str(place) for place in source]}


def _program_text(name: str, entry: ProgramProfile) -> str:
    memory = entry.program.memory
    inside = float(entry.step_seconds.sum())
    lines = [f"profile of {name}: {entry.calls} calls, {entry.seconds:.4f} s in programs, {inside:.4f} s in steps",
             f"  memory: arena {memory.arena_bytes:,} bytes, lower bound {memory.lower_bound_bytes:,} bytes",
             f"  {'share':>6} {'ms/call':>9} {'GFLOP/s':>8} {'GB/s':>7} {'result':>12}  step"]
    rows = sorted(_program_dict(entry)["steps"], key=lambda row: -row["seconds"])
    for row in rows:
        lines.append(f"  {row['share']:6.1%} {row['seconds'] / max(entry.calls, 1) * 1e3:9.4f} {row['gflops']:8.2f} "
                     f"{row['gbytes']:7.2f} {row['bytes']:12,}  {row['step']} {row['name']}"
                     + (f"  [{row['sources'][0].split(': ')[0]}]" if row["sources"] else ""))
    return "\n".join(lines)
