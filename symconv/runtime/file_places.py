"""Where a user may have a file written: checked before anything is made for it; and the file is there as a whole or not at all."""
from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

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


@contextmanager
def whole_file(path: Path) -> Iterator[IO[bytes]]:
    """A file to write, which takes the place of what stands at the path when the block has ended without an error.

    After an error (a full disk) what stood there before is there still, and nothing else.  What is no plain file (`/dev/stdout`, a
    pipe), or lies in a folder that takes no new files, is written as it is; a link stays one.

    Raises:
        OSError: nothing can be written there; its text names the place.
    """
    target = Path(os.path.realpath(path))
    is_plain = not target.exists() or (target.is_file() and os.access(target.parent, os.W_OK))
    try:
        with _beside(target) if is_plain else target.open("wb") as file:
            yield file
    except OSError as error:
        if error.filename is None and error.errno is not None:  # of a write: it does not say to what
            error.filename = str(path)
        raise


@contextmanager
def _beside(target: Path) -> Iterator[IO[bytes]]:
    """A new file in the same folder, moved into the target's place at the end, with its mode; removed after an error."""
    with tempfile.NamedTemporaryFile(dir=target.parent, prefix=f".{target.name[:40]}-", delete=False) as file:
        try:
            yield file
            file.flush()
            os.chmod(file.name, target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~_umask())
            os.replace(file.name, target)
        except BaseException:
            os.unlink(file.name)
            raise


def write_whole_text(path: Path, text: str) -> None:
    """A text file in UTF-8, there as a whole or not at all: see `whole_file`."""
    with whole_file(path) as file:
        file.write(text.encode("utf-8"))


def _umask() -> int:
    """The process's mask of file modes, which can only be read by setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
