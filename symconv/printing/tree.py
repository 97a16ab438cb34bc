"""debugprint: an expression as a tree of text."""
from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import IO, Any

from ..errors import ArgumentError, explain_error
from ..graph import Apply, Variable
from .names import escape, make_id, shortened, variable_text
from .operations import operation_text
from .subject import Subject, make_subject

ID_STYLES = ("CHAR", "int", "")
_DEEPEST = 20
_ASCII = str.maketrans({"├": "|", "└": "`", "│": "|", "─": "-", "·": "-", "→": ">", "…": "."})
_REPEATED = "···"


def debugprint(obj: Any, depth: int = -1, print_type: bool = False, file: IO[str] | str | None = None, ids: str = "CHAR",
               stop_on_name: bool = False, print_shape: bool = False) -> Any:
    r"""Print an expression as a tree: a line for each node, its inputs indented below it.

    Every node and leaf is printed once, with an id; where it is met again one line with its id and `···` stands for it.  A
    branch deeper than 20 levels goes on below, at the left margin.  Of a compiled function the last program is printed
    (before there is one: the graph as rewritten for any shape), and every line says dtype[shape], the step that computes
    it and with which implementation (or "view": no step, only other strides), the input whose memory it takes ("in
    place of i0") and the shared variable that it is stored to ("→ W (in place)").  In fused operations i0, i1, … are the
    inputs in the order in which they stand below.

    Args:
        obj: a variable, an Apply, a list, tuple or dict of these, a FunctionGraph, a compiled function or a Program.
        depth: how many levels to print below the results; -1 for all.
        print_type: add dtype[shape] to every line (always there for a program).
        file: None for standard output, "str" to get the text, or a file object, which is returned.
        ids: "CHAR" for A, B, …, "int" for 0, 1, …, "" for none.
        stop_on_name: do not print what is below a variable with a name (other than those asked for).
        print_shape: add the shape to every line.

    Raises:
        GraphTypeError: `obj` is something else.
        ArgumentError: `depth`, `ids` or `file` is none of the above.

    Theano: `theano.printing.debugprint`.

    >>> import symconv as sc, symconv.tensor as T
    >>> x = T.vector("x")
    >>> sc.debugprint(T.exp(x) + x)
    add [id A]
    ├─ exp [id B]
    │  └─ x [id C]
    └─ x [id C] ···
    """
    _check_options(depth, ids, file)
    tree = _Tree(make_subject(obj), depth, print_type, ids, stop_on_name, print_shape)
    if isinstance(file, str):
        return "\n".join(tree.lines())
    stream = sys.stdout if file is None else file
    for line in tree.lines():
        stream.write(_encodable(line, getattr(stream, "encoding", None)) + "\n")
    return file


def _check_options(depth: Any, ids: Any, file: Any) -> None:
    if isinstance(depth, bool) or not hasattr(depth, "__index__"):
        raise ArgumentError(explain_error("depth is a whole number of levels, -1 for all", repr(depth)))
    if ids not in ID_STYLES:
        raise ArgumentError(explain_error('ids is "CHAR", "int" or ""', repr(ids)))
    if file is not None and file != "str" and not hasattr(file, "write"):
        raise ArgumentError(explain_error('file is None, "str" or an open file', repr(file),
                                          "open the file first: file=open(path, \"w\")"))


def _encodable(line: str, encoding: str | None) -> str:
    """The line in characters that the stream has: the tree in ASCII and other characters escaped where it must be."""
    if encoding is None:
        return line
    try:
        line.encode(encoding)
    except UnicodeEncodeError:
        return line.translate(_ASCII).encode(encoding, "backslashreplace").decode(encoding)
    return line


@dataclass(frozen=True, slots=True)
class _Branch:
    """A variable still to be printed: the texts before it and before its inputs, levels from the result and the margin."""

    variable: Variable
    before: str
    below: str
    level: int
    column: int
    is_named_stop: bool


@dataclass
class _Tree:
    """The state of one printing."""

    subject: Subject
    depth: int
    print_type: bool
    ids: str
    stop_on_name: bool
    print_shape: bool
    numbers: dict[Apply | Variable, int] = field(default_factory=dict)
    printed: set[Apply | Variable] = field(default_factory=set)
    detailed: set[Variable] = field(default_factory=set)
    continued: list[_Branch] = field(default_factory=list)

    def lines(self) -> Iterator[str]:
        """Every line."""
        if self.subject.title:
            yield self.subject.title
        for position, root in enumerate(self.subject.roots):
            copied = f" (copied by step {self.subject.copies[position]})" if position in self.subject.copies else ""
            before = f"{root.title}{copied}: " if root.title else ""
            yield from self._branches(_Branch(root.variable, before, "", 0, 0, False))
            while self.continued:
                branch = self.continued.pop(0)
                if _key(branch.variable) not in self.printed:
                    yield from self._branches(branch)

    def _branches(self, first: _Branch) -> Iterator[str]:
        waiting = [first]
        while waiting:
            branch = waiting.pop()
            key = _key(branch.variable)
            text = branch.before + self._head(branch.variable, key)
            node = branch.variable.apply
            if key in self.printed:
                yield f"{text}{self._details(branch.variable)} {_REPEATED}"
                continue
            inputs = () if node is None or self._stops(branch) else node.inputs
            if inputs and branch.column >= _DEEPEST:
                self.continued.append(_Branch(branch.variable, "↓ ", "  ", branch.level, 0, branch.is_named_stop))
                yield f"{text} {_REPEATED} ↓"
                continue
            self.printed.add(key)
            yield text + self._details(branch.variable)
            waiting.extend(reversed(list(self._below(branch, inputs))))

    def _below(self, branch: _Branch, inputs: tuple[Variable, ...]) -> Iterator[_Branch]:
        for position, variable in enumerate(inputs):
            is_last = position == len(inputs) - 1
            corner, bar = ("└─ ", "   ") if is_last else ("├─ ", "│  ")
            yield _Branch(variable, branch.below + corner, branch.below + bar, branch.level + 1, branch.column + 1, True)

    def _stops(self, branch: _Branch) -> bool:
        is_named = self.stop_on_name and branch.is_named_stop and bool(branch.variable.name)
        return is_named or 0 <= self.depth <= branch.level

    def _head(self, variable: Variable, key: Apply | Variable) -> str:
        """What the variable is, with its id."""
        node = variable.apply
        text = variable_text(variable) if node is None else operation_text(node)
        if node is not None and len(node.outputs) > 1:
            text += f".{variable.index}"
        number = self.numbers.setdefault(key, len(self.numbers))
        mark = make_id(number, self.ids)
        return f"{text} [id {mark}]" if mark else text

    def _details(self, variable: Variable) -> str:
        """Name, type and marks, where the variable is met for the first time."""
        if variable in self.detailed:
            return ""
        self.detailed.add(variable)
        node, subject = variable.apply, self.subject
        name = f" '{shortened(escape(variable.name))}'" if node is not None and variable.name else ""
        if self.print_type or subject.program is not None:
            name += f" {variable.type}"
        elif self.print_shape:
            name += f" ({', '.join('?' if size is None else str(size) for size in variable.type.shape)})"
        marks = [self._leaf_mark(variable)] if node is None else self._node_marks(node, variable)
        marks += subject.update_marks(variable)
        return name + "".join(f" · {mark}" for mark in marks if mark)

    def _leaf_mark(self, variable: Variable) -> str:
        kind = self.subject.leaf_kind(variable)
        is_plain = kind == "input" and variable not in self.subject.input_numbers
        return "" if is_plain or (kind == "constant" and not variable.name) else self.subject.leaf_mark(variable)

    def _node_marks(self, node: Apply, variable: Variable) -> list[str]:
        if self.subject.program is None:
            return []
        found = self.subject.steps.get(node)
        if found is None:
            return ["view"]
        number, step = found
        choice = step.choice
        marks = [f"step {number} {choice.name if choice is not None else step.name}"]
        if choice is not None and choice.copied:
            marks.append("copies " + ", ".join(f"i{position}" for position in choice.copied) + " first")
        return marks + self.subject.in_place_marks(variable)


def _key(variable: Variable) -> Apply | Variable:
    """What has an id: the node, or the leaf."""
    return variable if variable.apply is None else variable.apply
