"""Profile: what the calls of a function cost, by step, by operation, by the user's line, and in memory."""
from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .planned import PlannedProgram
from .profile_rows import Share, StepRow, by_line, by_operation, live_bytes, make_rows

Array = np.ndarray[Any, Any]
MAX_TRACED = 1000  # calls that a trace can show: the last ones


@dataclass
class ProgramProfile:
    """What one program has cost so far.

    `seconds` is in the program in all, `step_seconds` in each of its steps, `step_waits` the part of these spent waiting for a
    device; `step_runs` counts the calls in which a step ran (prepared steps run only when state has changed).
    """

    program: PlannedProgram
    calls: int = 0
    seconds: float = 0.0
    call_seconds: float = 0.0
    step_seconds: Array = field(default_factory=lambda: np.zeros(0))
    step_waits: Array = field(default_factory=lambda: np.zeros(0))
    step_runs: Array = field(default_factory=lambda: np.zeros(0, np.int64))


@dataclass(slots=True)
class Call:
    """One call, for traces: when it began and ended, and the same of the program in it and its steps' seconds."""

    program: PlannedProgram
    program_start: float
    program_seconds: float
    step_seconds: Array
    start: float
    end: float


class Profile:
    """The profile of one function; it adds up the programs of all shapes. Empty unless calls were profiled.

    `str(fn.profile)` is a table, `as_dict()` the same as data, `to_trace(path)` a file for Perfetto or `chrome://tracing`.
    Times are wall-clock: a busy machine makes them longer.
    """

    def __init__(self, name: str, device: str = "cpu") -> None:
        self.name = name
        self.device = device
        self.making_seconds = 0.0
        self.calls: deque[Call] = deque(maxlen=MAX_TRACED)
        self.programs: dict[int, ProgramProfile] = {}

    def note(self, program: PlannedProgram, seconds: float, step_seconds: Array, step_waits: Array | None = None) -> None:
        """Add one run of a program that has just ended, with the seconds of each of its steps."""
        entry = self.programs.get(id(program))
        if entry is None:
            count = len(program.steps)
            entry = self.programs[id(program)] = ProgramProfile(program, 0, 0.0, 0.0, np.zeros(count), np.zeros(count),
                                                                np.zeros(count, np.int64))
        entry.calls += 1
        entry.seconds += seconds
        entry.step_seconds += step_seconds
        entry.step_waits += 0.0 if step_waits is None else step_waits
        entry.step_runs += step_seconds > 0
        end = time.perf_counter()
        self.calls.append(Call(program, end - seconds, seconds, np.array(step_seconds), end - seconds, end))

    def note_call(self, start: float, made: float) -> None:
        """The call that began at `start` and ran the program noted last has ended; `made` of its seconds went into a program."""
        call, end = self.calls[-1], time.perf_counter()
        call.start, call.end = start, end
        self.programs[id(call.program)].call_seconds += end - start - made

    def clear(self) -> None:
        """Forget everything, to leave out first calls, say."""
        self.making_seconds = 0.0
        self.calls.clear()
        self.programs.clear()

    @property
    def entries(self) -> tuple[ProgramProfile, ...]:
        """What each program has cost."""
        return tuple(self.programs.values())

    def rows_of(self, program: PlannedProgram) -> tuple[StepRow, ...]:
        """A row for every step of a program; empty where it was not profiled."""
        entry = self.programs.get(id(program))
        return () if entry is None else self._rows(entry)

    def rows(self) -> Iterator[StepRow]:
        """A row for every step of every program."""
        for entry in self.entries:
            yield from self._rows(entry)

    def _rows(self, entry: ProgramProfile) -> tuple[StepRow, ...]:
        return make_rows(entry.program, entry.step_seconds, entry.step_waits, entry.step_runs, self.device)

    def by_operation(self) -> list[Share]:
        """The time of each class of operations, the longest first."""
        return by_operation(self.rows())

    def by_line(self) -> list[Share]:
        """The time of each of the user's lines, the longest first; a step of several lines is divided evenly among them."""
        return by_line(self.rows())

    def seconds(self) -> dict[str, float]:
        """Where the time of all calls went: `calls` = `python` + `programs`, `programs` = `between_steps` + `steps`.

        `python`: looking at arguments, copies to and from a device, new state put in place; `waiting`: the part of `steps` in
        which the host waited for a device; `making`: programs made for new shapes, which is not part of `calls`.
        """
        calls, programs = (sum(values) for values in zip(*((entry.call_seconds, entry.seconds) for entry in self.entries),
                                                         strict=True)) if self.entries else (0.0, 0.0)
        steps = sum(float(entry.step_seconds.sum()) for entry in self.entries)
        return {"calls": calls, "python": calls - programs, "programs": programs, "between_steps": programs - steps,
                "steps": steps, "waiting": sum(float(entry.step_waits.sum()) for entry in self.entries),
                "making": self.making_seconds}

    def as_dict(self) -> dict[str, Any]:
        """Plain data, fit for JSON: seconds in all, the tables by operation and by line, and each program with its steps."""
        return {"name": self.name, "device": self.device, "calls": sum(entry.calls for entry in self.entries),
                "seconds": self.seconds(), "by_operation": [each.as_dict() for each in self.by_operation()],
                "by_line": [each.as_dict() for each in self.by_line()],
                "programs": [self._program_dict(entry) for entry in self.entries]}

    def _program_dict(self, entry: ProgramProfile) -> dict[str, Any]:
        program = entry.program
        return {"inputs": [f"{variable.label}: {variable.type}" for variable in program.graph.inputs], "calls": entry.calls,
                "seconds": entry.seconds, "arena_bytes": program.memory.arena_bytes,
                "lower_bound_bytes": program.memory.lower_bound_bytes, "peak_step": live_bytes(program).peak_step,
                "steps": [row.as_dict() for row in self._rows(entry)]}

    def to_trace(self, path: Any) -> None:
        """Write the last calls (1,000 at most) as trace events: open the file in https://ui.perfetto.dev or `chrome://tracing`.

        The thread "host" has calls and the programs in them, "steps" every step with its implementation, problem and line of
        yours; a counter shows the bytes of the arena in use.  Steps follow each other as they ran; their times were taken one by
        one, the gaps between them are not in the file.

        Raises:
            ArgumentError: the path is a folder, or lies in none.
        """
        from .trace import write_trace

        write_trace(self, path)

    def __str__(self) -> str:
        from ..printing.profile_table import profile_text

        return profile_text(self)

    def __repr__(self) -> str:
        return str(self)
