"""The folder of compiled kernels: content-addressed, private, safe for any number of processes without locks.

An entry is `NAME.so` with `NAME.sha256` beside it; NAME is a digest of everything that its bytes depend on.  Both are
written elsewhere in the folder and moved into place, so that no reader ever meets half a file; an entry whose bytes
do not have the written digest (cut short, overwritten) is as good as absent.  Two processes that build the same entry
write the same thing twice, which costs time and breaks nothing.
"""
from __future__ import annotations

import atexit
import hashlib
import logging
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

log = logging.getLogger("symconv.codegen")
_STALE_SECONDS = 3600.0  # scratch folders older than this are left-overs of killed processes
_ROOM = bytes(4 << 20)   # what a compiler needs to write at least, its own temporary files included


class KernelCache:
    """One folder of compiled kernels. `folder` is where entries are looked for, `writable` where new ones go."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.writable = folder
        self._lock = threading.Lock()
        refused = self._prepare()
        if refused:
            self._use_temporary(f"cannot be used ({refused})")
        self._remove_stale()

    def find(self, name: str, suffix: str = ".so") -> Path | None:
        """The entry's file if it is there and whole, else None."""
        for folder in dict.fromkeys((self.folder, self.writable)):
            path = self._path(folder, name, suffix)
            try:
                wanted = path.with_suffix(".sha256").read_text(encoding="ascii").strip()
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
        note.write_text(digest, encoding="ascii")
        os.replace(built, path)
        os.replace(note, path.with_suffix(".sha256"))
        return path

    def store_made(self, name: str, data: bytes, suffix: str) -> None:
        """Keep what can be made again at any time: where it cannot be written, that is logged and nothing else."""
        try:
            with self.scratch() as folder:
                built = folder / f"made{suffix}"
                built.write_bytes(data)
                self.store(name, built, suffix)
        except OSError as error:
            log.warning("%s is made again by the next process: it cannot be kept in %s (%s)", name + suffix, self.writable, error)

    def keep(self, kind: str, name: str, text: str) -> Path:
        """Write a text file for people (a source) under the folder `kind`."""
        path = self.kept(kind, name)
        path.parent.mkdir(mode=0o700, exist_ok=True)
        with self.scratch() as folder:
            (folder / name).write_text(text, encoding="utf-8")
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
            self.give_up_writing(error.strerror or str(error))
            return Path(tempfile.mkdtemp(prefix="scratch-", dir=self.writable))

    def give_up_writing(self, why: str) -> bool:
        """Put new entries into a temporary folder from now on; False where that is so already."""
        with self._lock:
            if self.writable != self.folder:
                return False
            self._use_temporary(f"cannot be used ({why})")
        return True

    def see_to_room(self) -> str:
        """Move to a temporary folder where no compiler could write here; why it cannot there either, empty if it can."""
        why = self.why_no_room()
        if why and self.give_up_writing(why):
            why = self.why_no_room()
        return why

    def why_no_room(self) -> str:
        """Why no file of a few megabytes can be written (a full disk, a quota, a limit of the process); empty if one can."""
        try:
            with self.scratch() as folder:
                (folder / "room").write_bytes(_ROOM)
        except OSError as error:
            return error.strerror or str(error)
        return ""

    def _path(self, folder: Path, name: str, suffix: str) -> Path:
        return folder / name[:2] / (name + suffix)

    def _prepare(self) -> str:
        """Make and check the folder; why it cannot be written to, empty if it can."""
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except FileExistsError:
            raise BackendError(explain_error("the kernel cache is not a folder", str(self.folder),
                                             "set SYMCONV_CACHE_DIR to a folder of your own")) from None
        except OSError as error:
            return error.strerror or str(error)
        _refuse_shared(self.folder)
        if os.statvfs(self.folder).f_flag & getattr(os, "ST_NOEXEC", 0):
            return "it is mounted so that no code in it may run: noexec"
        return "" if os.access(self.folder, os.W_OK | os.X_OK) else "it is read-only"

    def _use_temporary(self, why: str) -> None:
        try:
            self.writable = Path(tempfile.mkdtemp(prefix="symconv-"))
        except OSError as error:
            raise BackendError(explain_error("there is no place for compiled kernels", f"{self.folder} {why}; no temporary folder: "
                                             f"{error}", "set SYMCONV_CACHE_DIR to a folder that can be written to")) from None
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
    try:
        return KernelCache(Path(setting).expanduser().absolute() if setting else _users_folder())
    except (RuntimeError, ValueError, OSError) as error:  # nobody's home folder; a name that is none; no temporary folder
        raise BackendError(explain_error("the kernel cache has no place", f"the setting cache_dir={setting!r}: {error}",
                                         "set SYMCONV_CACHE_DIR to a folder of your own")) from None


def _users_folder() -> Path:
    """The user's cache folder; one of their own for temporary files where they have no home (a number alone, in a container)."""
    import platformdirs

    folder = Path(platformdirs.user_cache_dir("symconv"))
    return folder / "kernels" if folder.is_absolute() else Path(tempfile.gettempdir()) / f"symconv-{os.getuid()}"
