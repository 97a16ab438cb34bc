"""pprint: an expression as mathematics."""
from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from ..graph import Apply, Variable
from ..graph.traversal import leaves, toposort
from ..ops.convolution import Conv
from ..ops.lowered.fused_elementwise import FusedElementwise
from ..ops.lowered.reduce_many import ReduceMany
from ..ops.reductions import Reduce
from ..ops.scalar import ScalarProgram
from .infix import Term, atom, program_uses
from .names import variable_text
from .phrases import Phrase, phrase
from .subject import Subject, make_subject


def pprint(obj: Any) -> str:
    """An expression as one line of mathematics, as it would be written in Python, with as few brackets as it needs.

    What broadcasting adds by itself (new axes, repeated elements) and casts of constants are left out.  A part of more
    than 40 characters that stands more than once is named and listed below: `where t1 = …`.  Of several results each has a
    line; what a compiled function stores is written `W ← …`.

    Args:
        obj: what `debugprint` takes.

    Theano: `theano.printing.pp`.

    >>> import symconv as sc, symconv.tensor as T
    >>> x, W, b = T.tensor4("x"), T.tensor4("W"), T.vector("b")
    >>> print(sc.pprint(T.nnet.relu(T.nnet.conv2d(x, W) + b.dimshuffle("x", 0, "x", "x"))))
    relu(conv2d(x, W) + b)
    """
    return "\n".join(Writer(make_subject(obj)).lines())


class Writer:
    """Terms for all variables of a subject, and the parts that were given names; `leaf` is what stands for a leaf."""

    def __init__(self, subject: Subject, leaf: Callable[[Variable], str] = variable_text) -> None:
        self.subject = subject
        self.leaf = leaf
        self.parts: list[tuple[str, Term]] = []
        self.terms: dict[Variable, Term] = {}
        self.taken = {variable_text(leaf) for leaf in leaves(subject.variables)}

    def lines(self) -> list[str]:
        """A line for every result, then the named parts."""
        lines = [before + term.text for before, term in self.results()]
        return lines + [("where " if number == 0 else "      ") + f"{name} = {term.text}"
                        for number, (name, term) in enumerate(self.parts)]

    def results(self) -> list[tuple[str, Term]]:
        """For every result what stands before it, and its term."""
        order = toposort(self.subject.variables)
        uses = _uses(order, self.subject)
        for node in order:
            terms = phrase(Phrase(node, [self._term(variable) for variable in node.inputs], self._share))
            for variable, term in zip(node.outputs, terms, strict=True):
                self.terms[variable] = self._share(term) if uses[variable] > 1 and term.is_long else term
        return [self._result(number) for number in range(len(self.subject.roots))]

    def _term(self, variable: Variable) -> Term:
        return self.terms[variable] if variable.apply is not None else atom(self.leaf(variable))

    def _share(self, term: Term) -> Term:
        name = f"t{len(self.parts) + 1}"
        while name in self.taken:
            name = f"{name}_"
        self.parts.append((name, term))
        return atom(name)

    def _result(self, number: int) -> tuple[str, Term]:
        root = self.subject.roots[number]
        term = self._term(root.variable)
        if root.target is not None:
            return f"{variable_text(root.target)} ← ", term
        return f"{root.title}: " if root.title else "", term


def _uses(order: list[Apply], subject: Subject) -> Counter[Variable]:
    """How often every variable's text would be written."""
    uses = Counter(subject.variables)
    for node in order:
        uses.update(node.inputs)
        program, arguments = _program(node)
        if program is not None:
            for position, count in program_uses(program).items():
                if position < len(arguments) and count > 1:
                    uses[arguments[position]] += count - 1
    return uses


def _program(node: Apply) -> tuple[ScalarProgram | None, tuple[Variable, ...]]:
    """The scalar program of a fused node and the variables of its first values (none for the convolution's own)."""
    op = node.op
    if isinstance(op, (FusedElementwise, ReduceMany)):
        return op.program, node.inputs
    if isinstance(op, Reduce):
        return op.prologue, node.inputs
    if isinstance(op, Conv) and op.epilogue is not None:
        return op.epilogue.program, (node.outputs[0], *node.inputs[op.n_core_inputs:])
    return None, ()
