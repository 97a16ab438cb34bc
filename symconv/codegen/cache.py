"""The folder of compiled kernels: content-addressed, private, safe for any number of processes without locks.

An entry is `NAME.so` with `NAME.sha256` beside it; NAME is a digest of everything that its bytes depend on.  Both are
written elsewhere in the folder and moved into place, so that no reader ever meets half a file; an entry whose bytes
do not have the written digest (cut short, overwritten) is as good as absent.  Two processes that build the same entry
write the same thing twice, which costs time and breaks nothing.
"""
from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import stat
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path

from ..config import config
from ..errors import BackendError, explain_error

_STALE_SECONDS = 3600.0  # scratch folders older than this are left-overs of killed processes


class KernelCache:
    """One folder of compiled kernels. `folder` is where entries are looked for, `writable` where new ones go."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.writable = folder
        self._lock = threading.Lock()
        if not self._prepare():
            self._use_temporary("is read-only")
        self._remove_stale()

    def find(self, name: str, suffix: str = ".so") -> Path | None:
        """The entry's file if it is there and whole, else None."""
        for folder in dict.fromkeys((self.folder, self.writable)):
            path = self._path(folder, name, suffix)
            try:
                wanted = path.with_suffix(".sha256").read_text().strip()
                if hashlib.sha256(path.read_bytes()).hexdigest() == wanted:
                    return path
            except (OSError, UnicodeDecodeError):
                continue
        return None

    def store(self, name: str, built: Path, suffix: str = ".so") -> Path:
        """Move a finished file (made in a `scratch` folder) to its place as an entry."""
        digest = hashlib.sha256(built.read_bytes()).hexdigest()
        path = self._path(self.writable, name, suffix)
        path.parent.mkdir(mode=0o700, exist_ok=True)
        note = built.with_suffix(".sha256")
        note.write_text(digest)
        os.replace(built, path)
        os.replace(note, path.with_suffix(".sha256"))
        return path

    def keep(self, kind: str, name: str, text: str) -> Path:
        """Write a text file for people (a source) under the folder `kind`."""
        path = self.kept(kind, name)
        path.parent.mkdir(mode=0o700, exist_ok=True)
        with self.scratch() as folder:
            (folder / name).write_text(text)
            os.replace(folder / name, path)
        return path

    def kept(self, kind: str, name: str) -> Path:
        """Where `keep` writes a file."""
        return self.writable / kind / name

    @contextmanager
    def scratch(self) -> Iterator[Path]:
        """A new folder on the cache's file system, removed afterwards."""
        folder = self._make_scratch()
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _make_scratch(self) -> Path:
        try:
            self.writable.mkdir(mode=0o700, parents=True, exist_ok=True)  # again, if somebody emptied the cache
            return Path(tempfile.mkdtemp(prefix="scratch-", dir=self.writable))
        except OSError as error:
            with self._lock:
                if self.writable == self.folder:
                    self._use_temporary(f"cannot be written to ({error.strerror})")
            return Path(tempfile.mkdtemp(prefix="scratch-", dir=self.writable))

    def _path(self, folder: Path, name: str, suffix: str) -> Path:
        return folder / name[:2] / (name + suffix)

    def _prepare(self) -> bool:
        """Make and check the folder; False where it cannot be written to."""
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except FileExistsError:
            raise BackendError(explain_error("the kernel cache is not a folder", str(self.folder),
                                             "set SYMCONV_CACHE_DIR to a folder of your own")) from None
        except OSError:
            return False
        _refuse_shared(self.folder)
        return os.access(self.folder, os.W_OK | os.X_OK)

    def _use_temporary(self, why: str) -> None:
        self.writable = Path(tempfile.mkdtemp(prefix="symconv-"))
        atexit.register(_remove_in_same_process, self.writable, os.getpid())
        warnings.warn(f"the kernel cache {self.folder} {why}: kernels compiled now are kept in {self.writable} "
                      "until this process ends (set SYMCONV_CACHE_DIR to a folder that can be written to)",
                      RuntimeWarning, stacklevel=3)

    def _remove_stale(self) -> None:
        with suppress(OSError):
            for entry in self.writable.glob("scratch-*"):
                if time.time() - entry.stat().st_mtime > _STALE_SECONDS:
                    shutil.rmtree(entry, ignore_errors=True)


def _remove_in_same_process(folder: Path, process: int) -> None:
    if os.getpid() == process:  # a forked child must not take its parent's folder away
        shutil.rmtree(folder, ignore_errors=True)


def _refuse_shared(folder: Path) -> None:
    """Refuse a folder in which somebody else could put code for us to run."""
    state = folder.stat()
    found = ""
    if state.st_uid not in (os.getuid(), 0):
        found = f"{folder} belongs to user number {state.st_uid}, you are {os.getuid()}"
    elif state.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        found = f"{folder} has mode {stat.S_IMODE(state.st_mode):o}: others can write to it"
    if found:
        raise BackendError(explain_error(
            "the kernel cache must be yours alone, since code in it is run", found,
            f"chmod go-w {folder}, or set SYMCONV_CACHE_DIR to a folder of your own"))


def current_cache() -> KernelCache:
    """The cache that the settings name now."""
    return _cache_at(config.cache_dir)


@lru_cache(maxsize=16)
def _cache_at(setting: str) -> KernelCache:
    if setting:
        return KernelCache(Path(setting).expanduser().absolute())
    import platformdirs

    return KernelCache(Path(platformdirs.user_cache_dir("symconv")) / "kernels")
