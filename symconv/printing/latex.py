r"""An expression as LaTeX for notebooks: the same mathematics as `pprint`, with fractions, roots, powers and indices."""
from __future__ import annotations

import re
from typing import Any

from ..graph import Variable
from .infix import Term
from .mathematics import Writer
from .names import variable_text
from .subject import make_subject

MOST_CHARACTERS = 600
_FUNCTIONS = {"exp", "log", "sin", "cos", "tan", "sinh", "cosh", "tanh", "min", "max"}
_OPERATORS = {
    " + ": " + ", " - ": " - ", " * ": r" \cdot ", " @ ": r"\,", " == ": " = ", " != ": r" \neq ", " <= ": r" \le ",
    " >= ": r" \ge ", " < ": r" \lt ", " > ": r" \gt ", " & ": r" \wedge ", " | ": r" \vee ", " ^ ": r" \oplus ",
    " // ": r" \mathbin{/\!/} ", " % ": r" \bmod ", " << ": r" \ll ", " >> ": r" \gg ", ".T": r"^{\top}",
    ".shape": r".\mathrm{shape}",
}
_SPECIAL = {"\\": r"\backslash ", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "_": r"\_", "%": r"\%",
            "^": r"\wedge ", "~": r"\sim ", "<": r"\lt ", ">": r"\gt ", " ": r"\ ", "'": r"{'}", '"': r"{''}", "`": r"{'}"}
_TOKENS = re.compile(r"(?P<mark>[\ue000-\uefff]+)|(?P<word>[^\W\d]\w*)|(?P<number>\d+\.?\d*(?:e[+-]?\d+)?)|(?P<other>.)", re.DOTALL)


def to_latex(obj: Any) -> str | None:
    r"""The mathematics of a variable (or of what else `debugprint` takes) as LaTeX for one displayed formula.

    None where it has more than 600 characters: that is for `pprint` or a drawing.

    >>> import symconv as sc, symconv.tensor as T
    >>> x, W = T.vector("x"), T.matrix("W_1")
    >>> to_latex(T.exp(-x**2 / 2))
    '\\exp\\left(\\frac{-x^{2}}{2}\\right)'
    """
    names: list[str] = []

    def marked(variable: Variable) -> str:
        """A leaf as one character that no name has: so names need not be told from syntax afterwards."""
        names.append(name_as_latex(variable_text(variable)))
        return chr(0xE000 + (len(names) - 1) % 0xF00)

    writer = Writer(make_subject(obj), marked)
    results = writer.results()
    length = sum(term.length for _, term in (*results, *writer.parts))
    if length > MOST_CHARACTERS or not results:
        return None
    lines = [(before, _term(term, names)) for before, term in results]
    lines += [(f"{name} = ", _term(term, names)) for name, term in writer.parts]
    rows = [f"{_words(before)}{text}" for before, text in lines]
    return rows[0] if len(rows) == 1 else r"\begin{gathered}" + r" \\ ".join(rows) + r"\end{gathered}"


def name_as_latex(name: str) -> str:
    r"""A name as users chose it: one letter in italics, digits at its end as an index, several letters upright.

    >>> name_as_latex("W1"), name_as_latex("b_2"), name_as_latex("learning_rate"), name_as_latex("2.5")
    ('W_{1}', 'b_{2}', '\\mathrm{learning\\_rate}', '2.5')
    """
    if re.fullmatch(r"-?\d+\.?\d*(e[+-]?\d+)?", name):
        return _number(name)
    indexed = re.fullmatch(r"([^\W\d_])_?(\d+)", name)
    if indexed:
        return f"{indexed[1]}_{{{indexed[2]}}}"
    if len(name) == 1 and name.isalpha():
        return name
    return rf"\mathrm{{{''.join(_SPECIAL.get(character, character) for character in name)}}}"


def _number(text: str) -> str:
    digits, _, power = text.removesuffix(".0").partition("e")
    return rf"{digits} \cdot 10^{{{int(power)}}}" if power else digits


def _term(term: Term, names: list[str]) -> str:
    """A term, its parts first; without recursion, since each bracket may be a level."""
    done: dict[int, str] = {}
    waiting: list[tuple[Term, bool]] = [(term, False)]
    while waiting:
        current, is_ready = waiting.pop()
        if is_ready:
            done[id(current)] = _joined(current, done, names)
        elif id(current) not in done:
            waiting.append((current, True))
            waiting.extend((piece, False) for piece in current.pieces if isinstance(piece, Term))
    return done[id(term)]


def _joined(term: Term, done: dict[int, str], names: list[str]) -> str:
    pieces = term.pieces
    texts = [done[id(piece)] if isinstance(piece, Term) else _syntax(piece, names) for piece in pieces]
    if len(pieces) == 3 and pieces[1] == " / ":
        return rf"\frac{{{_bare(pieces[0], texts[0], done)}}}{{{_bare(pieces[2], texts[2], done)}}}"
    if len(pieces) == 3 and pieces[1] == "**":
        return f"{{{texts[0]}}}^{{{_bare(pieces[2], texts[2], done)}}}" if len(texts[0]) > 1 else f"{texts[0]}^{{{texts[2]}}}"
    if len(pieces) == 4 and pieces[:2] == ("sqrt", "("):
        return rf"\sqrt{{{texts[2]}}}"
    return "".join(texts)


def _bare(piece: str | Term, text: str, done: dict[int, str]) -> str:
    """A part without the brackets that a fraction or power makes needless."""
    if isinstance(piece, Term) and len(piece.pieces) == 3 and piece.pieces[0] == "(" and isinstance(piece.pieces[1], Term):
        return done[id(piece.pieces[1])]
    return text


def _syntax(piece: str, names: list[str]) -> str:
    """What `pprint` writes between names: operators, brackets, functions, options."""
    if piece in _OPERATORS:
        return _OPERATORS[piece]
    return "".join(_token(match, names) for match in _TOKENS.finditer(piece))


def _token(match: re.Match[str], names: list[str]) -> str:
    text = match[0]
    kind = match.lastgroup
    if kind == "mark":
        return " ".join(names[ord(character) - 0xE000] for character in text)
    if kind == "word":
        return _word(text)
    if kind == "number":
        return _number(text)
    brackets = {"(": r"\left(", ")": r"\right)", "[": r"\left[", "]": r"\right]", ",": r",\,", " ": "", "=": "{=}", ":": "{:}"}
    return brackets.get(text, _SPECIAL.get(text, text))


def _word(text: str) -> str:
    if text in _FUNCTIONS:
        return f"\\{text}"
    if re.fullmatch(r"t\d+_*", text):
        return f"t_{{{text[1:]}}}".replace("_}", "'}")
    return rf"\operatorname{{{''.join(_SPECIAL.get(character, character) for character in text)}}}"


def _words(text: str) -> str:
    """What stands before a result: its title, or the state that it is stored to."""
    for ending, sign in ((" ← ", r" \leftarrow "), (" = ", " = "), (": ", r":\quad ")):
        if text.endswith(ending):
            name = text.removesuffix(ending)
            return (_word(name) if re.fullmatch(r"t\d+_*", name) else name_as_latex(name)) + sign
    return ""


def variable_as_latex(variable: Variable) -> str | None:
    """What `Variable._repr_latex_` gives: a displayed formula, None where it is too long for one."""
    found = to_latex(variable)
    return None if found is None else f"$\\displaystyle {found}$"
