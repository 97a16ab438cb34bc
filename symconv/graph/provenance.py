"""Where in the user's files a node was written; kept beside the node, never part of its identity."""
from __future__ import annotations

import linecache
import os
import sys
from dataclasses import dataclass
from types import FrameType
from typing import Any

from .scope import current_scope

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_USER_SIDE = (_PACKAGE + "demo",)  # code of the package that writes expressions as a user does
_is_user_file: dict[str, bool] = {}  # asked for every frame of every node: a look-up is quicker than the comparison


@dataclass(frozen=True, slots=True)
class SourceLine:
    """A place in the user's code, and the name scope that was open there. `str` gives `file:line: text of the line`."""

    filename: str
    lineno: int
    scope: str = ""

    @property
    def text(self) -> str:
        """The line itself, without its indentation; empty where the file cannot be read."""
        return linecache.getline(self.filename, self.lineno).strip()

    def __reduce__(self) -> Any:
        return SourceLine, (self.filename, self.lineno, self.scope)

    def __str__(self) -> str:
        text = self.text
        return f"{self.filename}:{self.lineno}" + (f": {text}" if text else "") + (f"  (in {self.scope})" if self.scope else "")


Sources = tuple[SourceLine, ...]


def current_source() -> Sources:
    """The innermost line of the call stack that is the user's (outside the package), as a tuple of one or none."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        filename = frame.f_code.co_filename
        is_user = _is_user_file.get(filename)
        if is_user is None:
            is_user = _is_user_file[filename] = not filename.startswith(_PACKAGE) or filename.startswith(_USER_SIDE)
        if is_user:
            return (SourceLine(filename, frame.f_lineno, current_scope()),)
        frame = frame.f_back
    return ()


def merge_sources(*groups: Sources) -> Sources:
    """The union of several nodes' places, in order of first appearance, at most eight."""
    first = groups[0] if groups else ()
    if all(group == first for group in groups):
        return first[:8]
    merged: dict[SourceLine, None] = {}
    for group in groups:
        merged.update(dict.fromkeys(group))
    return tuple(merged)[:8]
