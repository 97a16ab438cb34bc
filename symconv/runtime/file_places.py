"""Where a user may have a file written: checked before anything is made for it."""
from __future__ import annotations

import os
from pathlib import Path

from ..errors import ArgumentError, explain_error


def file_place(path: str | os.PathLike[str]) -> Path:
    """The path, if a file can be written there: it is no folder, and its own folder exists.

    Raises:
        ArgumentError: an empty path, a folder, or a folder that is not there.

    >>> file_place("graph.html").name
    'graph.html'
    """
    text = os.fspath(path)
    place = Path(text)
    if not text or place.is_dir() or not place.resolve().parent.is_dir():
        raise ArgumentError(explain_error("this is no place for a file", repr(text), "name a file in a folder that is there"))
    return place
