"""What a line of a tree says of a variable beside what computes it: name, type, layout, step, memory, time."""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..graph import Apply, Variable
from ..runtime.layouts import operand_bytes
from ..runtime.step import Place, Step
from .names import bytes_text, escape, shortened
from .subject import Subject
from .terminal import Style


@dataclass(frozen=True, slots=True)
class Marks:
    """The marks of a subject's variables, as `debugprint` was asked for them."""

    subject: Subject
    style: Style
    print_type: bool
    print_shape: bool
    print_memory: bool
    print_scope: bool = False

    def text(self, variable: Variable) -> str:
        """Everything behind the id."""
        parts = [self.style("type", text) for text in self._types(variable)]
        if variable.apply is not None and variable.name:
            parts.insert(0, self.style("name", f"'{shortened(escape(variable.name))}'"))
        marks = [*self._marks(variable), *self._memory(variable)]
        text = "".join(f" {part}" for part in parts) + "".join(f" · {self.style('mark', mark)}" for mark in marks if mark)
        times = self._times(variable)
        return text + (f" · {self.style('time', times)}" if times else "")

    def _types(self, variable: Variable) -> Iterator[str]:
        """The type; for a program with the layout of images, else the shape alone where that was asked for."""
        if self.print_type or self.subject.program is not None:
            yield str(variable.type)
        elif self.print_shape:
            yield f"({', '.join('?' if size is None else str(size) for size in variable.type.shape)})"
        layout = self.subject.layouts.get(variable)
        if layout is not None:
            yield layout

    def _marks(self, variable: Variable) -> list[str]:
        node = variable.apply
        marks = [self._leaf_mark(variable)] if node is None else self._node_marks(node, variable)
        scopes = ", ".join(map(escape, variable.scopes)) if self.print_scope else ""
        return marks + self.subject.update_marks(variable) + ([f"in {scopes}"] if scopes else [])

    def _leaf_mark(self, variable: Variable) -> str:
        kind = self.subject.leaf_kind(variable)
        is_plain = kind == "input" and variable not in self.subject.input_numbers
        return "" if is_plain or (kind == "constant" and not variable.name) else self.subject.leaf_mark(variable)

    def _node_marks(self, node: Apply, variable: Variable) -> list[str]:
        if self.subject.program is None:
            return []
        found = self.subject.steps.get(node)
        if found is None:
            return [self._view_mark(variable)]
        number, step = found
        marks = [f"step {number} {implementation(step)}"]
        if step.choice is not None and step.choice.copied:
            marks.append("copies " + ", ".join(f"i{position}" for position in step.choice.copied) + " first")
        if step.is_prepared:
            marks.append("only when state changes")
        return marks + self.subject.in_place_marks(variable)

    def _view_mark(self, variable: Variable) -> str:
        """A view with its strides, where they are not row-major."""
        place = self._place(variable)
        if place is None or place.operand.is_contiguous:
            return "view of i0"
        return f"view of i0, strides ({', '.join(map(str, place.operand.strides))})"

    def _place(self, variable: Variable) -> Place | None:
        program = self.subject.program
        return None if program is None else program.schedule.places.get(variable)

    def _memory(self, variable: Variable) -> list[str]:
        """How many bytes the elements take, and where they lie."""
        if not self.print_memory:
            return []
        count = operand_bytes(variable)
        size = "? B" if count is None else bytes_text(count)
        place = self._place(variable)
        if place is None:
            return [size]
        home = place.storage.home
        start = home.offset + place.offset_bytes
        where = {"temporary": f"at {start} in the arena", "kept": f"at {start} in what is kept between calls"}
        return [f"{size} {where.get(home.kind) or f'in {home}'}"]

    def _times(self, variable: Variable) -> str:
        """What a profiled step took; once for a node with several results."""
        node, rows = variable.apply, self.subject.profile_rows
        found = None if node is None or not rows else self.subject.steps.get(node)
        if found is None or variable.index:
            return ""
        row = rows[found[0]]
        speed = f" {row.gflops:.2f} GFLOP/s" if row.gflops else ""
        return f"{row.seconds_each * 1e3:.4f} ms{speed} {row.share:.1%}"


def implementation(step: Step) -> str:
    """What runs a step, in a word."""
    return step.name if step.choice is None else step.choice.name
