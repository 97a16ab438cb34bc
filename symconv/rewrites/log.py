"""What rewriting did and why it did not do more: kept beside the function for `explain()` and for finding a wrong rule."""
from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import overload

from ..graph import Apply, Constant, Variable
from ..graph.provenance import Sources

_LONGEST_NAME = 60


@dataclass(frozen=True, slots=True)
class Application:
    """One hit: `rule` of `phase` replaced the outputs `before` by `after`. The texts are made when asked for."""

    phase: str
    rule: str
    before: tuple[Variable, ...]
    after: tuple[Variable, ...]
    sources: Sources

    def __str__(self) -> str:
        return f"{self.rule}: {_texts(self.before)} → {_texts(self.after)}"

    @property
    def places(self) -> str:
        """The user's lines that it touched, as `file.py:12, file.py:14`."""
        return ", ".join(f"{os.path.basename(place.filename)}:{place.lineno}" for place in self.sources)


@dataclass(frozen=True, slots=True)
class Declined:
    """A rule that recognised its pattern at `node` and gave a reason not to apply."""

    phase: str
    rule: str
    node: Apply
    reason: str

    def __str__(self) -> str:
        return f"{self.rule} at {expression_text(self.node.outputs[0], 2)}: {self.reason}"


@dataclass(frozen=True, slots=True)
class PhaseReport:
    """A finished phase: sweeps run, nodes before and after, seconds."""

    phase: str
    sweeps: int
    nodes_before: int
    nodes_after: int
    seconds: float

    def __str__(self) -> str:
        return (f"{self.phase}: {self.nodes_before} → {self.nodes_after} nodes, {self.sweeps} sweeps, "
                f"{self.seconds * 1e3:.1f} ms")


@dataclass(slots=True)
class Log:
    """The record of one rewriting: applications, declined rules (one entry for each node and reason), phases, fuel left.

    `images`, where asked for (a list), gets for each sweep what became of every variable: those that changed → what stands for
    them afterwards.
    """

    fuel: int = -1
    applications: list[Application] = field(default_factory=list)
    phases: list[PhaseReport] = field(default_factory=list)
    images: list[dict[Variable, Variable]] | None = None
    _declined: dict[tuple[str, str, Apply, str], Declined] = field(default_factory=dict)

    @property
    def has_fuel(self) -> bool:
        """Whether another application is allowed (`config.fuel`)."""
        return self.fuel < 0 or len(self.applications) < self.fuel

    @property
    def skips(self) -> tuple[Declined, ...]:
        """Rules that recognised their pattern and declined, in order."""
        return tuple(self._declined.values())

    def decline(self, phase: str, rule: str, node: Apply, reason: str) -> None:
        """Note that a rule declined at a node."""
        self._declined.setdefault((phase, rule, node, reason), Declined(phase, rule, node, reason))

    def keep_declined(self, phase: str, nodes: Collection[Apply]) -> None:
        """Forget what was declined in a phase at nodes that are gone: something else was done there."""
        self._declined = {key: each for key, each in self._declined.items() if each.phase != phase or each.node in nodes}

    def counts(self) -> Counter[str]:
        """How often each rule was applied."""
        return Counter(application.rule for application in self.applications)

    def __str__(self) -> str:
        lines = [str(report) for report in self.phases]
        lines += [f"  {application}" for application in self.applications]
        lines += [f"  not applied: {declined}" for declined in self.skips]
        return "\n".join(lines)


class Rewrites(Sequence[Application]):
    """The applications of several logs as one list, in order; printed, a line for each: number, phase, what was done, where."""

    def __init__(self, logs: Sequence[Log]) -> None:
        self.logs = tuple(logs)
        self._applications = tuple(application for log in logs for application in log.applications)

    def __len__(self) -> int:
        return len(self._applications)

    @overload
    def __getitem__(self, index: int) -> Application: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Application, ...]: ...

    def __getitem__(self, index: int | slice) -> Application | tuple[Application, ...]:
        return self._applications[index]

    @property
    def skips(self) -> tuple[Declined, ...]:
        """Rules that recognised their pattern and declined, in order."""
        return tuple(declined for log in self.logs for declined in log.skips)

    def __str__(self) -> str:
        width = max((len(each.phase) for each in self), default=0)
        lines = [f"{number:3} {each.phase:{width}}  {each}" + (f"  [{each.places}]" if each.sources else "")
                 for number, each in enumerate(self)]
        return "\n".join(map(_one_line, lines)) or "nothing was rewritten"

    __repr__ = __str__


def _one_line(text: str) -> str:
    """The text with everything escaped that no terminal shows, such as a newline in a name."""
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode("ascii") for each in text)


def _texts(variables: tuple[Variable, ...]) -> str:
    return ", ".join(expression_text(variable) for variable in variables)


def expression_text(variable: Variable, depth: int = 3) -> str:
    """The expression of a variable down to a few levels: `log(add(1.0, exp(x)))`; `…` where it goes on."""
    node = variable.apply
    if node is None or isinstance(variable, Constant):
        return _short(variable.label)
    if depth == 0:
        return _short(variable.name or "…")
    parts = ", ".join(expression_text(each, depth - 1) for each in node.inputs)
    text = f"{node.op}({parts})"
    return f"{text}.{variable.index}" if len(node.outputs) > 1 else text


def _short(name: str) -> str:
    """A name on one line, cut where it is so long that it hides the rest."""
    return _one_line(name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME - 1]}…")
