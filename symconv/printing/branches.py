"""The lines of a tree: each node once with its inputs indented below it, wherever else it is met a line that refers to it."""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ..graph import Apply, Variable
from .marks import Marks
from .names import make_id, variable_text
from .operations import operation_text
from .subject import Subject
from .terminal import Style

_DEEPEST = 20
_REPEATED = "···"
Key = Apply | Variable


@dataclass(frozen=True, slots=True)
class Branch:
    """A variable still to be printed: the texts before it and before its inputs, levels from the result and the margin."""

    variable: Variable
    before: str
    below: str
    level: int
    column: int
    is_named_stop: bool


@dataclass
class Tree:
    """The state of one printing; `numbers` has the ids given so far, `printed` what was printed in full."""

    subject: Subject
    marks: Marks
    style: Style
    depth: int
    id_type: str
    stop_on_name: bool
    numbers: dict[Key, int] = field(default_factory=dict)
    printed: set[Key] = field(default_factory=set)
    detailed: set[Variable] = field(default_factory=set)
    continued: list[Branch] = field(default_factory=list)

    def lines(self) -> Iterator[str]:
        """Every line."""
        if self.subject.title:
            yield self.style("title", self.subject.title)
        for position, root in enumerate(self.subject.roots):
            copied = f" (copied by step {self.subject.copies[position]})" if position in self.subject.copies else ""
            before = f"{root.title}{copied}: " if root.title else ""
            yield from self._branches(Branch(root.variable, before, "", 0, 0, False))
            while self.continued:
                branch = self.continued.pop(0)
                if key_of(branch.variable) not in self.printed:
                    yield from self._branches(branch)

    def _branches(self, first: Branch) -> Iterator[str]:
        waiting = [first]
        while waiting:
            branch = waiting.pop()
            key = key_of(branch.variable)
            text = branch.before + self._head(branch.variable, key)
            node = branch.variable.apply
            if key in self.printed:
                yield f"{text}{self._details(branch.variable)} {_REPEATED}"
                continue
            inputs = () if node is None or self._stops(branch) else node.inputs
            if inputs and branch.column >= _DEEPEST:
                self.continued.append(Branch(branch.variable, "↓ ", "  ", branch.level, 0, branch.is_named_stop))
                yield f"{text} {_REPEATED} ↓"
                continue
            self.printed.add(key)
            yield text + self._details(branch.variable)
            waiting.extend(reversed(list(self._below(branch, inputs))))

    def _below(self, branch: Branch, inputs: tuple[Variable, ...]) -> Iterator[Branch]:
        for position, variable in enumerate(inputs):
            is_last = position == len(inputs) - 1
            corner, bar = ("└─ ", "   ") if is_last else ("├─ ", "│  ")
            yield Branch(variable, branch.below + corner, branch.below + bar, branch.level + 1, branch.column + 1, True)

    def _stops(self, branch: Branch) -> bool:
        is_named = self.stop_on_name and branch.is_named_stop and bool(branch.variable.name)
        return is_named or 0 <= self.depth <= branch.level

    def _head(self, variable: Variable, key: Key) -> str:
        """What the variable is, with its id."""
        node = variable.apply
        text = variable_text(variable) if node is None else operation_text(node)
        if node is not None and len(node.outputs) > 1:
            text += f".{variable.index}"
        number = self.numbers.setdefault(key, len(self.numbers))
        mark = str(id(key)) if self.id_type == "id" else make_id(number, self.id_type)
        head = self.style("leaf" if node is None else "operation", text)
        return f"{head} {self.style('id', f'[id {mark}]')}" if mark else head

    def _details(self, variable: Variable) -> str:
        """Name, type and marks, where the variable is met for the first time."""
        if variable in self.detailed:
            return ""
        self.detailed.add(variable)
        return self.marks.text(variable)


def key_of(variable: Variable) -> Key:
    """What has an id: the node, or the leaf."""
    return variable if variable.apply is None else variable.apply
