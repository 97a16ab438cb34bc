"""The pool of threads that kernels run on (`templates/threads.c.j2`), shared by all of them.

Kernels are C with OpenMP's pragmas.  GCC makes these calls of a few functions of its OpenMP library; `threads.h.j2`, part of every
such kernel, leads them to the pool instead.  Compilers that do it another way keep their own OpenMP library.
"""
from __future__ import annotations

import ctypes
import os
from functools import lru_cache
from importlib import resources

from ..config import MOST_THREADS

POOL_FLAGS = ("-DSC_THREAD_POOL", "-Wl,--as-needed")
"""Compiler flags with which kernels use the pool."""


@lru_cache(maxsize=1)
def pool_header() -> str:
    """The C text, part of every parallel kernel, that leads OpenMP's pragmas to the pool."""
    return (resources.files("symconv.codegen") / "templates" / "threads.h.j2").read_text(encoding="utf-8").strip("\n")


def default_threads() -> int:
    """How many threads kernels use: OMP_NUM_THREADS, else the processors this process may run on; MOST_THREADS at most."""
    wanted = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    if wanted.isascii() and wanted.isdigit() and int(wanted):
        return min(int(wanted), MOST_THREADS)
    return min(usable_processors(), MOST_THREADS)


def usable_processors() -> int:
    """How many processors this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def connect(library: ctypes.CDLL) -> None:
    """Lead a freshly loaded kernel's parallel regions to the pool, if it was built for that."""
    try:
        use_pool = library.sc_use_pool
    except (AttributeError, UnicodeDecodeError):  # there is none; that is said with the library's path, which may be no text
        return
    use_pool.argtypes = [ctypes.c_void_p]
    use_pool.restype = None
    use_pool(_pool_address())


@lru_cache(maxsize=1)
def _pool_address() -> int:
    """Address of the pool's table of functions; built and loaded once."""
    from .templates import render_kernel
    from .toolchain import build_sources

    source = render_kernel("threads.c.j2", most_threads=MOST_THREADS)
    table = (ctypes.c_void_p * 8).in_dll(build_sources([source])[source], "sc_thread_pool")
    use_threads = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(table[6] or 0)
    use_threads(default_threads())
    return ctypes.addressof(table)
