"""Where a user may have a file written: checked before anything is made for it."""
from __future__ import annotations

import os
from pathlib import Path

from ..errors import ArgumentError, explain_error


def file_place(path: str | os.PathLike[str]) -> Path:
    """The path, if it can be that of a file: it is no folder, and its own folder exists.

    Raises:
        ArgumentError: no path or an empty one, a folder, or a place in a folder that is not there.

    >>> file_place("graph.html").name
    'graph.html'
    """
    text = os.fspath(path) if isinstance(path, (str, os.PathLike)) else None
    if not isinstance(text, str) or not text or "\0" in text or Path(text).is_dir() or not Path(text).parent.is_dir():
        raise ArgumentError(explain_error("this is no place for a file", repr(path), "name a file in a folder that is there"))
    return Path(text)
