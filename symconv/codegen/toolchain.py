"""From generated C to machine code: finds a C compiler, builds kernels in parallel, opens them once.

A compiler is known by its path and time of change, and what was found out about it (its version, the flags it takes) is
kept in the kernel cache: a warm start runs no process at all.
"""
from __future__ import annotations

import ctypes
import hashlib
import logging
import signal
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from ..config import config
from ..errors import BackendError, explain_error
from .cache import KernelCache, current_cache
from .compiler import Compiler, find_compiler, missing_compiler_error, run_compiler
from .kernel import Kernel
from .threads import connect, usable_processors

log = logging.getLogger("symconv.codegen")
KERNEL_SECONDS = 900.0  # a compiler that takes longer over one kernel hangs


@dataclass(frozen=True, slots=True, eq=False)
class BuiltKernel:
    """A kernel and the address of its machine code; `library` keeps that loaded."""

    kernel: Kernel
    address: int
    library: ctypes.CDLL


_opened: dict[str, ctypes.CDLL] = {}
_lock = threading.Lock()


def build(kernels: Sequence[Kernel]) -> list[BuiltKernel]:
    """Machine code of every kernel, in order; what neither this process nor the cache holds is compiled in parallel."""
    libraries = build_sources(list(dict.fromkeys(kernel.source for kernel in kernels)))
    return [_built(kernel, libraries[kernel.source]) for kernel in kernels]


def _built(kernel: Kernel, library: ctypes.CDLL) -> BuiltKernel:
    address = ctypes.cast(library[kernel.name], ctypes.c_void_p).value
    assert address is not None
    return BuiltKernel(kernel, address, library)


def build_sources(sources: Sequence[str]) -> dict[str, ctypes.CDLL]:
    """The loaded library of every C source; no compiler is asked for where there is no source."""
    if not sources:
        return {}
    compiler = find_compiler()
    if compiler is None:
        raise missing_compiler_error()
    cache = current_cache()
    names = {source: _entry_name(source, compiler) for source in sources}
    libraries = {source: library for source, name in names.items() if (library := _known(name, cache)) is not None}
    missing = [source for source in names if source not in libraries]
    if missing:
        built = _in_threads(lambda source: _compile_and_open(source, names[source], compiler, cache), missing)
        libraries.update(zip(missing, built, strict=True))
    _show_and_keep(names, cache)
    return libraries


def _in_threads(compile_one: Callable[[str], ctypes.CDLL], sources: Sequence[str]) -> list[ctypes.CDLL]:
    """What `compile_one` makes of every source, several at a time; one after the other where no thread can be started."""
    workers = min(len(sources), usable_processors())
    try:
        if workers > 1:
            with ThreadPoolExecutor(workers) as pool:
                return list(pool.map(compile_one, sources))
    except RuntimeError as error:
        log.warning("kernels are compiled one after the other: %s", error)
    return [compile_one(source) for source in sources]


def _show_and_keep(names: Mapping[str, str], cache: KernelCache) -> None:
    """Sources for people, those of kernels from the cache too: logged at `config.debug` 4, kept with `config.keep_sources`."""
    for source, name in names.items():
        if config.debug >= 4:
            log.debug("%s", source)
        if config.keep_sources and not cache.kept(name[:2], f"{name}.c").exists():
            try:
                cache.keep(name[:2], f"{name}.c", source)
            except OSError as error:
                log.warning("a generated source cannot be kept: %s", error)


def _entry_name(source: str, compiler: Compiler) -> str:
    digest = hashlib.sha256(compiler.identity.encode())
    digest.update(b"\0")
    digest.update(source.encode())
    return digest.hexdigest()


def _known(name: str, cache: KernelCache) -> ctypes.CDLL | None:
    """The library if it is loaded already, or whole in the cache."""
    library = _opened.get(name)
    if library is None and (path := cache.find(name)) is not None:
        try:
            return _open(name, path)
        except OSError as error:  # whole, yet not loadable: built against libraries that have gone; build it again
            log.warning("the cached kernel %s cannot be loaded (%s): it is compiled again", path, error)
    return library


def _open(name: str, path: Path) -> ctypes.CDLL:
    library = _opened.get(name)
    if library is None:
        library = ctypes.CDLL(str(path))
        connect(library)  # may itself build the pool, in other threads: no lock is held here
        with _lock:
            library = _opened.setdefault(name, library)
    return library


def _compile_and_open(source: str, name: str, compiler: Compiler, cache: KernelCache) -> ctypes.CDLL:
    try:
        return _open(name, _compile_somewhere(source, name, compiler, cache))
    except OSError as error:
        raise BackendError(explain_error("a kernel could not be built", str(error),
                                         f"see to it that {cache.writable} can be written to")) from error


def _compile_somewhere(source: str, name: str, compiler: Compiler, cache: KernelCache) -> Path:
    """Compile a source; once more in a temporary folder where the cache's own takes no files."""
    try:
        return _compile(source, name, compiler, cache)
    except (OSError, BackendError) as error:  # an OSError: of a file in the cache, such as a folder that somebody else made in it
        why = str(error) if isinstance(error, OSError) else cache.why_no_room()
        if not why or not cache.give_up_writing(why):
            raise
    return _compile(source, name, compiler, cache)


def _compile(source: str, name: str, compiler: Compiler, cache: KernelCache) -> Path:
    with cache.scratch() as folder:
        text, result = folder / "kernel.c", folder / "kernel.so"
        text.write_text(source, encoding="utf-8")
        try:
            status, said = run_compiler([*compiler.command, *compiler.flags, "-o", str(result), str(text), "-lm"], folder,
                                        KERNEL_SECONDS)
        except OSError as error:
            raise BackendError(explain_error("the C compiler could not be run for a kernel", str(error),
                                             "see what keeps it from running, or set SYMCONV_COMPILER to another")) from error
        if status != 0:
            raise _compile_error(source, name, compiler, cache, status, said)
        return cache.store(name, result)


def _compile_error(source: str, name: str, compiler: Compiler, cache: KernelCache, status: int, said: str) -> BackendError:
    try:
        place = str(cache.keep("failed", f"{name}.c", source))
    except OSError as error:
        place = f"not kept: {error}"
    lines = [line for line in said.splitlines() if "error" in line] or said.splitlines()
    found = "\n    ".join(line.strip() for line in (lines or ["the compiler said nothing"])[:6])
    command = f"{' '.join(compiler.command)} ({compiler.version})"
    if status < 0:
        return BackendError(explain_error(f"{command} was ended by {_signal_name(-status)} while it compiled a generated kernel",
                                          f"{found}\n  source: {place}", "see whether there is enough memory, and try again"))
    return BackendError(explain_error(f"{command} does not take a generated kernel", f"{found}\n  source: {place}",
                                      "report this with the source, or set SYMCONV_COMPILER to another compiler"))


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
