"""What a stream can show: colours on terminals, and the characters that its encoding has."""
from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

Style = Callable[[str, str], str]
"""`style(kind, text)`: the text as a thing of that kind is shown."""

_CODES = {"operation": "1", "leaf": "36", "id": "2", "name": "33", "type": "32", "mark": "2", "time": "35", "title": "1;4"}
_ASCII = str.maketrans({"├": "|", "└": "`", "│": "|", "─": "-", "·": "-", "→": ">", "←": "<", "↓": "v", "…": ".", "µ": "u",
                        "×": "x"})


def plain(kind: str, text: str) -> str:
    """The style of files and texts: none."""
    return text


def coloured(kind: str, text: str) -> str:
    """The style of terminals.

    >>> coloured("id", "[id A]")
    '\\x1b[2m[id A]\\x1b[0m'
    """
    return f"\x1b[{_CODES[kind]}m{text}\x1b[0m" if text else text


def style_of(stream: Any, is_given: bool) -> Style:
    """The style for a stream: colours on a terminal only.

    `NO_COLOR` (https://no-color.org) takes them away there; `FORCE_COLOR` brings them to standard output that is no terminal,
    but never to a stream that the user gave (`is_given`), such as a file.
    """
    environment = os.environ
    if environment.get("NO_COLOR"):
        return plain
    if environment.get("FORCE_COLOR", "0") not in ("", "0") and not is_given:
        return coloured
    if environment.get("TERM") == "dumb":
        return plain
    return coloured if _is_terminal(stream) else plain


def _is_terminal(stream: Any) -> bool:
    asked = getattr(stream, "isatty", None)
    try:
        return bool(asked is not None and asked())
    except ValueError:  # a closed file; writing to it tells so
        return False


def as_ascii(text: str) -> str:
    """The text in ASCII: the tree in bars and hyphens, other characters escaped.

    >>> print(as_ascii("└─ ß ···"))
    `- \\xdf ---
    """
    return text.translate(_ASCII).encode("ascii", "backslashreplace").decode("ascii")


def encodable(text: str, encoding: str | None) -> str:
    """The text in characters that the encoding has: as it is, or the tree in ASCII and other characters escaped."""
    if encoding is None:
        return text
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return text.translate(_ASCII).encode(encoding, "backslashreplace").decode(encoding)
    return text


def standard_output() -> Any:
    """Where prints go now."""
    return sys.stdout
