"""What lies in the kernel cache: listing, counting, checking and clearing it."""
from __future__ import annotations

import hashlib
import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from .cache import KernelCache
from .notes import NOTES, is_whole_note


@dataclass(frozen=True, slots=True)
class CacheEntry:
    """A file of the cache with its digest beside it, or a note of something measured, which has its digest in itself."""

    path: Path
    nbytes: int
    seconds: float

    @property
    def kind(self) -> str:
        """What it is: the suffix without its dot; for a note what was measured."""
        return self.path.parent.name if self.is_note else self.path.suffix.lstrip(".")

    @property
    def is_note(self) -> bool:
        """Whether it is a note of something measured (`codegen/notes.py`)."""
        return self.path.parent.name in NOTES

    @property
    def is_whole(self) -> bool:
        """Whether its bytes have the written digest."""
        if self.is_note:
            return is_whole_note(self.path)
        try:
            wanted = self.path.with_suffix(".sha256").read_text(encoding="ascii").strip()
            return hashlib.sha256(self.path.read_bytes()).hexdigest() == wanted
        except (OSError, UnicodeDecodeError):
            return False


def cache_entries(cache: KernelCache) -> Iterator[CacheEntry]:
    """Every entry, the newest last."""
    found = []
    for note in cache.folder.glob("??/*.sha256"):
        for path in note.parent.glob(f"{note.stem}.*"):
            if path.suffix != ".sha256" and not path.name.endswith((".c", ".cu")):
                state = path.stat()
                found.append(CacheEntry(path, state.st_size, state.st_mtime))
    for path in (path for kind in NOTES for path in cache.folder.glob(f"{kind}/*.json")):
        state = path.stat()
        found.append(CacheEntry(path, state.st_size, state.st_mtime))
    yield from sorted(found, key=lambda entry: entry.seconds)


def cache_summary(cache: KernelCache) -> str:
    """How many entries of each kind, and their bytes."""
    counts, nbytes = Counter[str](), 0
    for entry in cache_entries(cache):
        counts[entry.kind] += 1
        nbytes += entry.nbytes
    kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items()))
    return f"{sum(counts.values())} entries ({kinds}), {nbytes / 2**20:.1f} MiB" if counts else "empty"


def clear_cache(cache: KernelCache) -> int:
    """Remove every entry and every kept source; the number of entries that there were. The folder itself stays."""
    count = sum(1 for _ in cache_entries(cache))
    for child in cache.folder.iterdir():
        if child.is_dir() and not child.is_symlink():
            shutil.rmtree(child, ignore_errors=True)
        else:
            child.unlink(missing_ok=True)
    return count


def broken_entries(cache: KernelCache) -> list[CacheEntry]:
    """Entries whose bytes do not have their digest; they are never used, and made anew when they are needed."""
    return [entry for entry in cache_entries(cache) if not entry.is_whole]
