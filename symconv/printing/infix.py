"""Expressions as mathematics with as few brackets as Python needs, and scalar programs written so.

A `Term` is a text in pieces, so that a chain of 20,000 nodes costs memory in proportion to its length; `text` joins them
without recursion.
"""
from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from .. import dtypes
from ..ops.scalar import SCALAR_OPS, Instruction, ScalarProgram
from .names import number_text

COMPARE, OR, XOR, AND, SHIFT, SUM, PRODUCT, SIGN, POWER, ATOM = range(10)
_LEVELS = {"==": COMPARE, "!=": COMPARE, "<": COMPARE, "<=": COMPARE, ">": COMPARE, ">=": COMPARE, "|": OR, "^": XOR,
           "&": AND, "+": SUM, "-": SUM, "*": PRODUCT, "/": PRODUCT, "//": PRODUCT, "%": PRODUCT, "@": PRODUCT,
           "**": POWER}
_PLAIN_NAMES = {"and_": "and", "or_": "or"}
_LONG = 40


@dataclass(frozen=True, slots=True, eq=False)
class Term:
    """A text with the level of its outermost operator (`ATOM` where nothing ever needs brackets)."""

    pieces: tuple[str | Term, ...]
    level: int
    length: int

    @property
    def text(self) -> str:
        """The joined text."""
        parts: list[str] = []
        waiting: list[str | Term] = [self]
        while waiting:
            piece = waiting.pop()
            if isinstance(piece, str):
                parts.append(piece)
            else:
                waiting.extend(reversed(piece.pieces))
        return "".join(parts)

    @property
    def is_long(self) -> bool:
        """Whether it is worth a name where it stands more than once."""
        return self.length > _LONG


def atom(text: str) -> Term:
    """A name; or a number, which has the level of a sign where it is negative."""
    return Term((text,), SIGN if text.startswith("-") else ATOM, len(text))


def joined(pieces: Sequence[str | Term], level: int = ATOM) -> Term:
    """Pieces in a row."""
    return Term(tuple(pieces), level, sum(len(piece) if isinstance(piece, str) else piece.length for piece in pieces))


def call(name: str, arguments: Sequence[Term | str]) -> Term:
    """`name(a, b)`."""
    pieces: list[str | Term] = [name, "("]
    for number, argument in enumerate(arguments):
        pieces += [", ", argument] if number else [argument]
    return joined([*pieces, ")"])


def bracketed(term: Term, lowest: int) -> Term:
    """The term, in brackets where its level is below `lowest`."""
    return term if term.level >= lowest else joined(["(", term, ")"])


def binary(symbol: str, left: Term, right: Term) -> Term:
    """`left symbol right`; brackets stand where Python, read back, would group otherwise."""
    level = _LEVELS[symbol]
    if symbol == "**":
        return joined([bracketed(left, ATOM), "**", bracketed(right, SIGN)], level)
    first = level + 1 if level == COMPARE else level
    return joined([bracketed(left, first), f" {symbol} ", bracketed(right, level + 1)], level)


def unary(symbol: str, argument: Term) -> Term:
    """`-a` or `~a`."""
    return joined([symbol, bracketed(argument, SIGN)], SIGN)


def scalar_term(name: str, arguments: Sequence[Term], dtype: str | None) -> Term:
    """One scalar operation on terms; `dtype` is the target of a cast."""
    if name == "cast":
        return call(str(dtype), arguments)
    if name == "square":
        return binary("**", arguments[0], atom("2"))
    symbol = SCALAR_OPS[name].symbol
    if len(arguments) == 1 and symbol:
        return unary(symbol, arguments[0])
    return binary(symbol, *arguments) if symbol in _LEVELS else call(_PLAIN_NAMES.get(name, name), arguments)


def program_texts(program: ScalarProgram, names: Sequence[str]) -> list[str]:
    """Every output of a scalar program over operands of these names; long parts used twice come first as `t1 = …`.

    >>> from symconv.ops.scalar import Instruction
    >>> program = ScalarProgram(("float32", "float32"), (Instruction("add", (0, 1), "float32"),
    ...                                                  Instruction("relu", (2,), "float32")), (3,))
    >>> program_texts(program, ["x", "b"])
    ['relu(x + b)']
    """
    named: list[str] = []

    def share(term: Term) -> Term:
        named.append(f"t{len(named) + 1} = {term.text}")
        return atom(f"t{len(named)}")

    terms = program_terms(program, [atom(name) for name in names], share)
    return [*named, *(term.text for term in terms)]


def program_terms(program: ScalarProgram, arguments: Sequence[Term], share: Callable[[Term], Term]) -> list[Term]:
    """The outputs of a scalar program as terms; `share` gives a long part that is used several times a name."""
    uses = program_uses(program)
    terms = list(arguments)
    for number, step in enumerate(program.body, len(program.inputs)):
        term = _instruction_term(step, terms)
        terms.append(share(term) if uses[number] > 1 and term.is_long else term)
    return [terms[number] for number in program.outputs]


def program_uses(program: ScalarProgram) -> Counter[int]:
    """How often every value of a scalar program is read or given."""
    return Counter(arg for step in program.body for arg in step.args) + Counter(program.outputs)


def _instruction_term(step: Instruction, terms: Sequence[Term]) -> Term:
    if step.op == "constant":
        return atom(number_text(np.asarray(step.value).astype(dtypes.numpy_dtype(step.dtype))))
    return scalar_term(step.op, [terms[arg] for arg in step.args], step.dtype)
