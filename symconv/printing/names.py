"""Texts of the smallest things: names that users chose, constants, ids, sizes, places in files."""
from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..graph import Constant, SourceLine, Variable

Array = np.ndarray[Any, Any]
_SHOWN_ELEMENTS = 6
_LONGEST_NAME = 60


def escape(text: str) -> str:
    r"""The text on one line: backslashes are doubled, newlines and what no terminal shows are written as escapes.

    >>> escape("a\nb ß")
    'a\\nb ß'
    """
    return "".join(_shown(character) for character in text)


def _shown(character: str) -> str:
    if character == "\\":
        return "\\\\"
    return character if character.isprintable() else character.encode("unicode_escape").decode("ascii")


def shortened(text: str, length: int = _LONGEST_NAME) -> str:
    """The text, cut in the middle where it is longer than `length`."""
    if len(text) <= length:
        return text
    head = (length - 1) * 2 // 3
    return f"{text[:head]}…{text[len(text) - (length - 1 - head):]}"


def variable_text(variable: Variable) -> str:
    """What stands for a leaf: its name, a constant's value, or its type in angle brackets where it has no name."""
    if variable.name:
        return shortened(escape(variable.name))
    return constant_text(variable.data) if isinstance(variable, Constant) else f"<{variable.type}>"


def constant_text(value: Array) -> str:
    """The value of a constant; a large one as its common value or its first elements.

    >>> constant_text(np.float32(0.1)), constant_text(np.zeros((3, 4)))
    ('0.1', '0.0 everywhere')
    """
    if value.ndim == 0:
        return number_text(value[()])
    if value.size == 0:
        return "empty"
    if value.size > _SHOWN_ELEMENTS and bool((value == value.flat[0]).all()):
        return f"{number_text(value.flat[0])} everywhere"
    if value.size > _SHOWN_ELEMENTS:
        first = ", ".join(number_text(each) for each in value.ravel()[:3])
        return f"[{first}, … {value.size} numbers]"
    return _nested(value)


def _nested(value: Array) -> str:
    if value.ndim == 0:
        return number_text(value[()])
    return f"[{', '.join(_nested(np.asarray(each)) for each in value)}]"


def number_text(number: Any) -> str:
    """The shortest text that gives the number back in its own dtype (0.1 for the float32 nearest to it).

    >>> number_text(np.float32(0.9)), number_text(np.int64(3)), number_text(np.bool_(True)), number_text(np.float32(1e9))
    ('0.9', '3', 'True', '1e+09')
    """
    return str(np.asarray(number)[()])


def make_id(number: int, style: str) -> str:
    """The id number 0, 1, … as letters (A … Z, AA …), as digits, or empty.

    >>> make_id(0, "CHAR"), make_id(25, "CHAR"), make_id(26, "CHAR"), make_id(702, "CHAR"), make_id(7, "int")
    ('A', 'Z', 'AA', 'AAA', '7')
    """
    if style != "CHAR":
        return str(number) if style == "int" else ""
    letters = ""
    number += 1
    while number:
        number, rest = divmod(number - 1, 26)
        letters = chr(ord("A") + rest) + letters
    return letters


def bytes_text(count: int) -> str:
    """A number of bytes for people.

    >>> bytes_text(40), bytes_text(2048), bytes_text(10376448)
    ('40 B', '2.0 KiB', '9.9 MiB')
    """
    power = min(max(count, 1).bit_length() - 1, 39) // 10
    return f"{count} B" if power == 0 else f"{count / 1024**power:.1f} {('KiB', 'MiB', 'GiB')[power - 1]}"


def plural(count: int, word: str, several: str = "") -> str:
    """`1 step`, `2 steps`."""
    return f"{count} {word}" if count == 1 else f"{count} {several or word + 's'}"


def places_text(places: Sequence[SourceLine]) -> str:
    """The places that made a node, as `file.py:12, 14; other.py:3`."""
    lines: dict[str, dict[str, None]] = {}  # a line run in several name scopes is told once
    for place in places:
        lines.setdefault(escape(os.path.basename(place.filename)), {})[str(place.lineno)] = None
    return "; ".join(f"{name}:{', '.join(numbers)}" for name, numbers in lines.items())
