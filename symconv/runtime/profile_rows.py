"""Times made into numbers that tell something: GFLOP/s, GB/s, the part of what the machine could do; sums by operation and line."""
from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from itertools import accumulate
from typing import Any

import numpy as np

from .. import dtypes
from ..codegen.kernel import Operand
from ..graph.provenance import Sources
from ..target import Target
from .planned import PlannedProgram
from .problems import conv_problem, conv_problems
from .step import Step
from .targets import make_target

Array = np.ndarray[Any, Any]
NO_LINE = "(what no line of yours asks for: copies, weights prepared)"


@dataclass(frozen=True, slots=True)
class StepRow:
    """What one step has cost: `seconds` in all runs, `seconds_each` in one.

    `name` is the kernel's, `op` the node's own text, `operation` its class (`Conv fprop`, `Reduce`, `copy`); `bytes` those of its
    results.
    `gflops` counts the products and sums of a direct computation, `gbytes` every element read or written once.  `roofline` is the
    least time that the machine's peak and bandwidth allow, as a part of the time taken; None where its ceilings are not known.
    Above 1 is possible: Winograd's form needs fewer products, and what lies in a cache comes faster.  `live_bytes` is what is in
    use of the arena when the step has ended.
    """

    step: int
    name: str
    op: str
    operation: str
    implementation: str
    problem: str
    runs: int
    seconds: float
    waiting: float
    share: float
    gflops: float
    gbytes: float
    roofline: float | None
    bytes: int
    live_bytes: int
    sources: Sources

    @property
    def seconds_each(self) -> float:
        """Seconds of one run."""
        return self.seconds / max(self.runs, 1)

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        found = {name: getattr(self, name) for name in self.__slots__}
        return {**found, "seconds_each": self.seconds_each, "sources": [str(place) for place in self.sources]}


@dataclass(frozen=True, slots=True)
class Share:
    """A part of all time: of an operation or of a line."""

    what: str
    steps: int
    seconds: float
    share: float

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class LiveBytes:
    """The bytes of the arena in use at each step, and after it; `peak_step` is the first step with the most (-1: none)."""

    at: tuple[int, ...]
    after: tuple[int, ...]
    peak_step: int


def live_bytes(program: PlannedProgram) -> LiveBytes:
    """What a program has in use of its arena, step by step."""
    count = len(program.steps)
    at, after = [0] * (count + 1), [0] * (count + 1)
    for slot in program.memory.slots:
        at[slot.first] += slot.nbytes
        at[slot.last + 1] -= slot.nbytes
        after[slot.first] += slot.nbytes
        after[slot.last] -= slot.nbytes
    levels, left = list(accumulate(at))[:count], list(accumulate(after))[:count]
    return LiveBytes(tuple(levels), tuple(left), levels.index(max(levels)) if levels else -1)


def make_rows(program: PlannedProgram, seconds: Array, waits: Array, runs: Array, device: str) -> tuple[StepRow, ...]:
    """A row for every step of a program."""
    total, live, target = max(float(seconds.sum()), 1e-30), live_bytes(program), make_target(device)
    return tuple(_row(number, step, float(seconds[number]), float(waits[number]), int(runs[number]), total, live, target)
                 for number, step in enumerate(program.steps))


def _row(number: int, step: Step, seconds: float, waiting: float, runs: int, total: float, live: LiveBytes,
         target: Target) -> StepRow:
    each, flops, moved = seconds / max(runs, 1), flops_of(step), moved_bytes(step)
    node = step.node
    source = node.source if node is not None else ()
    return StepRow(number, step.name, "copy" if node is None else str(node.op), operation_name(step),
                   "copy" if step.choice is None else step.choice.name, problem_text(step), runs, seconds, waiting, seconds / total,
                   flops / each / 1e9 if each else 0.0, moved / each / 1e9 if each else 0.0,
                   _roofline(step, flops, moved, each, target), sum(place.operand.nbytes for place in step.writes),
                   live.after[number], source)


def operation_name(step: Step) -> str:
    """The class of a step's operation: `Conv fprop`, `Elementwise`, `Reduce`, or what a step without one is for."""
    if step.node is None:
        return "preparation of weights" if step.writes[0].operand.shape != step.reads[0].operand.shape else "copy"
    problem = conv_problem(step.node)
    return type(step.node.op).__name__ if problem is None else f"Conv {problem.kind.value}"


def problem_text(step: Step) -> str:
    """The problem strings of convolutions, else the step's operands."""
    problems = conv_problems(step.node)
    if problems:
        return "; ".join(map(str, problems))
    reads, writes = (", ".join(_operand_text(place.operand) for place in places) for places in (step.reads, step.writes))
    return f"{reads} -> {writes}"


def _operand_text(operand: Operand) -> str:
    return f"{operand.dtype}[{','.join(map(str, operand.shape))}]"


def flops_of(step: Step) -> int:
    """The products and sums of a direct computation; what the kernel tells where the step is no convolution."""
    problems = conv_problems(step.node)
    if problems:
        return sum(problem.flops for problem in problems)
    return step.kernel.flops if step.kernel is not None else 0


def moved_bytes(step: Step) -> int:
    """The bytes of every element that a step reads or writes, each once; broadcast elements are one."""
    return sum(_distinct_bytes(place.operand) for place in dict.fromkeys((*step.reads, *step.writes)))


def _distinct_bytes(operand: Operand) -> int:
    count = 1
    for size, stride in zip(operand.shape, operand.strides, strict=True):
        count *= size if stride else min(size, 1)
    return count * dtypes.itemsize(operand.dtype)


def _roofline(step: Step, flops: int, moved: int, seconds: float, target: Target) -> float | None:
    """The least seconds by the machine's ceilings, as a part of those taken."""
    if target.device == "emulator" or not target.has_compiler or not seconds:
        return None
    dtype = step.writes[0].operand.dtype if step.writes else "float32"
    peak = target.peak_flops("float64" if dtype == "float64" else "float32")
    return max(flops / peak, target.copy_seconds(moved, working_set=moved)) / seconds


def by_operation(rows: Iterable[StepRow]) -> list[Share]:
    """Times added up by class of operation, the longest first."""
    return _added([(row.operation, row.seconds) for row in rows])


def by_line(rows: Iterable[StepRow]) -> list[Share]:
    """Times added up by the user's lines, the longest first; a step of several lines is divided evenly among them."""
    return _added((place, row.seconds / max(len(row.sources), 1)) for row in rows
                  for place in (map(str, row.sources) if row.sources else (NO_LINE,)))


def _added(parts: Iterable[tuple[str, float]]) -> list[Share]:
    seconds: dict[str, float] = {}
    counts: dict[str, int] = {}
    for what, part in parts:
        seconds[what] = seconds.get(what, 0.0) + part
        counts[what] = counts.get(what, 0) + 1
    total = max(sum(seconds.values()), 1e-30)
    return [Share(what, counts[what], part, part / total)
            for what, part in sorted(seconds.items(), key=lambda item: (-item[1], item[0]))]
