"""explain: a function's report as text, whole or for one node."""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ..errors import ArgumentError, explain_error
from ..graph import Apply, Variable
from ..ops.convolution import Conv
from ..runtime.function import Function
from ..runtime.report import CandidateReport, MemoryReport, Report, RewriteReport, StepReport, make_report
from .names import bytes_text, escape, places_text, plural, shortened, variable_text
from .operations import epilogue_text, operation_text

_WIDEST = 60


class Explanation(str):
    """A text that an interactive session shows as it is, without quotes and escapes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def explain(function: Function, wanted: Any = None) -> Explanation:
    """What a compiled function does and why; `wanted`, a node, variable, name or step number, asks for that alone."""
    report = make_report(function)
    title = f"{escape(report.name)} on {escape(report.device)}"
    if report.program is None:
        how = "Kernels are chosen for shapes: call the function once, or function.prepare(shapes)."
        lines = [f"{title}: no program yet", how,
                 *_section("rewriting", _rewrite_lines(report.rewrites))]
        return Explanation("\n".join(lines))
    if wanted is not None:
        steps = find_steps(report, wanted)
        return Explanation("\n\n".join("\n".join(_step_lines(step)) for step in steps))
    return Explanation("\n".join(_report_lines(title, report)))


def explain_as_dict(function: Function, wanted: Any = None) -> dict[str, Any]:
    """The same as plain data."""
    report = make_report(function)
    found = report.as_dict()
    if wanted is not None and report.program is not None:
        numbers = {step.number for step in find_steps(report, wanted)}
        found["steps"] = [step for step in found["steps"] if step["step"] in numbers]
    return found


def _report_lines(title: str, report: Report) -> list[str]:
    inputs = ", ".join(f"{escape(name)} {type}" for name, type in report.inputs) or "no inputs"
    convolutions = [step for step in report.steps if step.problem is not None]
    others = [step for step in report.steps if step.problem is None]
    assert report.memory is not None
    lines = [f"{title}: the program for {inputs} ({plural(len(report.steps), 'step')}"
             + (f"; one of {report.n_programs} programs)" if report.n_programs > 1 else ")")]
    lines += _section("convolutions", [line for step in convolutions for line in _step_lines(step)])
    lines += _section("other steps" if convolutions else "steps", _table([_row(step) for step in others]))
    lines += _section("chosen among several", [line for step in others for line in _choice_lines(step)])
    lines += _section("rewriting", _rewrite_lines(report.rewrites))
    lines += _section("memory", _memory_lines(report.memory))
    return lines + _section("machine", _machine_lines(report))


def _section(title: str, lines: Sequence[str]) -> list[str]:
    return ["", title, *(f"  {line}" for line in lines)] if lines else []


def _step_lines(step: StepReport) -> list[str]:
    """A step in full: problem, choice, candidates, what is fused, the user's line."""
    node = step.node
    what = str(step.problem) if step.problem is not None else step.copy if node is None else operation_text(node)
    lines = [f"step {step.number}: {what}", f"  runs {_choice_text(step)}"]
    if step.reference_reason is None:
        lines += _other_lines(step)
    if step.not_cudnn is not None:
        lines.append(f"  cuDNN: no, {step.not_cudnn}")
    if node is not None:
        lines += _node_lines(node)
    if step.copied:
        copied = ", ".join(f"i{position}" for position in step.copied)
        lines.append(f"  copies {copied} first: the kernel does not take their strides")
    lines += [f"  gives {type}{_mark(step, number)}" for number, type in enumerate(step.results)]
    return lines + [f"  written at {escape(str(place))}" for place in step.sources]


def _other_lines(step: StepReport) -> list[str]:
    """The candidates that were not chosen, and why none was timed where that was asked for."""
    lines = [f"  {_candidate_text(each)}" for each in step.candidates if not each.is_chosen]
    return lines + ([f"  not measured: {escape(step.not_measured)}"] if step.not_measured else [])


def _choice_lines(step: StepReport) -> list[str]:
    """Why this implementation, for a step that several were asked for."""
    if step.reference_reason is not None or len(step.candidates) < 2:
        return []
    return [f"step {step.number}: {_choice_text(step)}", *_other_lines(step)]


def _node_lines(node: Apply) -> list[str]:
    lines = []
    if isinstance(node.op, Conv) and node.op.epilogue is not None:
        names = [f"i{number}" for number in range(len(node.inputs))]
        lines.append(f"  fused into it: {epilogue_text(node.op, names)}")
    lines += [f"  i{number} {_operand_text(variable)}" for number, variable in enumerate(node.inputs)]
    return lines


def _operand_text(variable: Variable) -> str:
    what = variable_text(variable) if variable.apply is None else operation_text(variable.apply)
    return f"{shortened(what)} {variable.type}"


def _choice_text(step: StepReport) -> str:
    if step.reference_reason is not None:
        return f"the NumPy reference: {escape(step.reference_reason)}"
    chosen = next((each for each in step.candidates if each.is_chosen), None)
    expected = "" if chosen is None else _expected(chosen)
    return f"{step.implementation}{expected}, kernel {step.kernel}"


def _expected(candidate: CandidateReport) -> str:
    if not candidate.seconds:
        return ""
    speed = f", {candidate.gflops:.1f} GFLOP/s" if candidate.gflops else ""
    share = f", {candidate.share:.0%} of the peak" if candidate.share is not None else ""
    return f" ({'measured' if candidate.is_measured else 'expected'} {candidate.seconds * 1e3:.3g} ms{speed}{share})"


def _candidate_text(candidate: CandidateReport) -> str:
    if candidate.refusal is not None:
        return f"not {candidate.name}: {escape(candidate.refusal)}"
    return f"not {candidate.name}: slower{_expected(candidate)}"


def _mark(step: StepReport, output: int) -> str:
    """What is special about where a result goes."""
    names = [escape(name) for number, name in step.updates if number == output]
    return (", in the memory of an input" if output in step.in_place else "") + "".join(f", → {name}" for name in names)


def _row(step: StepReport) -> tuple[str, ...]:
    """A step as a row of the table: number, what it does, implementation, result, marks, place."""
    what = step.copy if step.node is None else shortened(operation_text(step.node), _WIDEST)
    how = step.implementation if step.reference_reason is None else f"NumPy reference: {escape(step.reference_reason)}"
    marks = ["in place"] if step.in_place else []
    marks += [f"→ {escape(name)}" for _, name in step.updates]
    return str(step.number), what, how, ", ".join(step.results), " ".join(marks), places_text(step.sources)


def _table(rows: Sequence[tuple[str, ...]]) -> list[str]:
    if not rows:
        return []
    every = [("step", "what", "implementation", "result", "", "written at"), *rows]
    widths = [max(len(row[column]) for row in every) for column in range(len(every[0]))]
    return ["  ".join(text.ljust(width) if column else text.rjust(width)
                      for column, (text, width) in enumerate(zip(row, widths, strict=True)) if width).rstrip()
            for row in every]


def _rewrite_lines(reports: Iterable[RewriteReport]) -> list[str]:
    lines = []
    for report in reports:
        often = sorted(report.counts.items(), key=lambda item: (-item[1], item[0]))
        counts = ", ".join(f"{rule} {count}" for rule, count in often)
        lines.append(f"{report.stage}: {counts or 'nothing applied'}")
        lines += [f"  not {rule} at {escape(node)}: {escape(reason)}"
                  for rule, node, reason in report.declined]
    return lines


def _memory_lines(memory: MemoryReport) -> list[str]:
    temporaries = plural(memory.temporaries, "temporary", "temporaries")
    lines = [f"arena of {bytes_text(memory.arena_bytes)} for {temporaries} (no plan can need less than "
             f"{bytes_text(memory.lower_bound_bytes)}); {plural(memory.in_place, 'result')} written in place"]
    for names, how in ((memory.updates_in_place, "written in place"), (memory.updates_swapped, "swapped in after the run")):
        if names:
            lines.append(f"updates {how}: {', '.join(map(escape, names))}")
    return lines


def _machine_lines(report: Report) -> list[str]:
    """What the expected times above reckon with; nothing where none stands above."""
    machine = report.machine
    shown = [step for step in report.steps if step.problem is not None or len(step.candidates) > 1]
    if machine is None or not any(each.seconds for step in shown for each in step.candidates):
        return []
    how = "measured once for this machine" if not machine.reason else f"stated defaults: {escape(machine.reason)}"
    return [f"expected times reckon, for {plural(machine.threads, 'thread')}, with {machine.flops / 1e9:.0f} GFLOP/s of float32 "
            f"and copies of {machine.memory / 1e9:.0f} GB/s in memory, {machine.l3 / 1e9:.0f} in the third cache, "
            f"{machine.l2 / 1e9:.0f} in the second", f"these are {how}"]


def find_steps(report: Report, wanted: Any) -> list[StepReport]:
    """The steps that a node, variable, name or number means.

    A variable of the user's is found by its name, else by the line where it was written.

    Raises:
        ArgumentError: no step is meant.
    """
    for meant in (_by_identity, _by_name, _by_place):
        found = [step for step in report.steps if meant(step, wanted)]
        if found:
            return found
    names = sorted({variable.name for step in report.steps if step.node is not None for variable in step.node.outputs
                    if variable.name} | {name for step in report.steps for _, name in step.updates})
    raise ArgumentError(explain_error("no step of the program is meant by this", repr(wanted),
                                      f"ask for a step number from 0 to {len(report.steps) - 1}, an op such as "
                                      f"'Conv', or a name: {', '.join(map(repr, names)) or 'there are none'}"))


def _by_identity(step: StepReport, wanted: Any) -> bool:
    if isinstance(wanted, int) and not isinstance(wanted, bool):
        return step.number == wanted
    node = wanted.apply if isinstance(wanted, Variable) else wanted
    return node is not None and step.node is node


def _by_name(step: StepReport, wanted: Any) -> bool:
    name = wanted.name if isinstance(wanted, Variable) else wanted
    if not isinstance(name, str) or not name:
        return False
    names = {name for _, name in step.updates}
    if step.node is not None:
        names |= {variable.name for variable in step.node.outputs if variable.name}
        names |= {step.node.op.name, type(step.node.op).__name__, step.kernel, step.implementation}
    return name in names


def _by_place(step: StepReport, wanted: Any) -> bool:
    source = getattr(wanted, "source", ()) if isinstance(wanted, (Variable, Apply)) else ()
    return any(place in step.sources for place in source)
