"""explain: a function's report as text, as data or as HTML, whole or for one node."""
from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..errors import ArgumentError, explain_error
from ..graph import Apply, Variable
from ..runtime.function import Function
from ..runtime.report import Report, StepReport, make_report
from .explain_text import report_text, steps_text

FORMATS = ("text", "dict", "html")


class Explanation(str):
    """A text that an interactive session shows as it is, without quotes and escapes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def explain(function: Function, what: Any = None, format: str = "text") -> Any:
    """What a compiled function does and why; `what`, a node, variable, name or step number, asks for that alone."""
    if format not in FORMATS:
        raise ArgumentError(explain_error(f"explain gives {', '.join(map(repr, FORMATS))}", repr(format)))
    report = make_report(function)
    if what is not None and report.program is not None:
        report = replace(report, steps=tuple(find_steps(report, what)))
    if format == "dict":
        return report.as_dict()
    if format == "html":
        from .explain_html import explain_as_html

        return explain_as_html(report)
    is_part = what is not None and report.program is not None
    return Explanation(steps_text(report) if is_part else report_text(report))


def find_steps(report: Report, wanted: Any) -> list[StepReport]:
    """The steps that a node, variable, name or number means.

    A variable of the user's is found by its name, else by the line where it was written; an input by the steps that read it.

    Raises:
        ArgumentError: no step is meant.
    """
    for meant in (_by_identity, _by_name, _by_place, _by_input):
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
    if step.problem is not None:
        names.add("Conv")  # those behind a pooling's gradient too
    return name in names


def _by_place(step: StepReport, wanted: Any) -> bool:
    source = getattr(wanted, "source", ()) if isinstance(wanted, (Variable, Apply)) else ()
    return any(place in step.sources for place in source)


def _by_input(step: StepReport, wanted: Any) -> bool:
    name = wanted.name if isinstance(wanted, Variable) else wanted
    leaves = () if step.node is None else [each for each in step.node.inputs if each.apply is None and each.name]
    return isinstance(name, str) and any(each.name == name for each in leaves)
