"""The machine's ceilings: multiply-and-add peak and copy bandwidths, measured once by a generated kernel and kept on disk.

They are measured when an estimate first needs them, in about a third of a second, never at import.  The roofline model is that of
Williams, Waterman and Patterson, "Roofline: An Insightful Visual Performance Model for Multicore Architectures" (2009).
"""
from __future__ import annotations

import ctypes
import logging
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from .. import dtypes
from ..config import config
from ..errors import BackendError
from ..target import DEFAULT_CEILINGS, Ceilings, Rates
from .kernel import Kernel
from .notes import CEILINGS, machine_facts, read_note, write_note
from .templates import render_kernel
from .threads import default_threads
from .toolchain import build

log = logging.getLogger("symconv.codegen")
Array = np.ndarray[Any, Any]
Call = Callable[[], float]
_SUMS = 12  # independent sums: a multiply-and-add takes 4 to 5 cycles, and two start in each
_ROUNDS = 400_000
_SECONDS = 0.02
_PIECE = 32 << 10
_MEMORY_BYTES = (32 << 20, 128 << 20)  # of one array; two that together do not fit into the last cache


def machine_ceilings(vector_bytes: int) -> Ceilings:
    """The ceilings of this machine, from memory, from the cache, or measured now.

    Where they cannot be measured, the defaults with the reason; `config.deterministic` also takes the defaults, so that no choice
    depends on a measurement.
    """
    if config.deterministic:
        return replace(DEFAULT_CEILINGS, reason="config.deterministic lets nothing depend on measurements")
    return _ceilings(config.cache_dir, config.compiler, vector_bytes, default_threads())


def fma_peak(threads: int, vector_bytes: int, dtype: str = "float32", seconds: float = _SECONDS) -> float:
    """Floating-point operations a second of the best of several runs on so many threads."""
    return _fmas(threads, vector_bytes, dtype, seconds) * 2 * (vector_bytes // dtypes.itemsize(dtype))


def copy_bandwidth(threads: int, nbytes: int, vector_bytes: int, seconds: float = _SECONDS) -> float:
    """Bytes read and written a second by copying an array of `nbytes` in small pieces, the best of several runs."""
    source, result = np.ones(nbytes // 4, np.float32), np.zeros(nbytes // 4, np.float32)
    return _copies(result, source, threads, vector_bytes, _PIECE, 1, seconds)


@lru_cache(maxsize=16)
def _ceilings(_cache_dir: str, _compiler: str, vector_bytes: int, threads: int) -> Ceilings:
    facts = {**machine_facts(), "measured": f"ceilings of {threads} threads, vectors of {vector_bytes} bytes"}
    noted = _noted(read_note(CEILINGS, facts))
    if noted is not None:
        return noted
    try:
        found = _measured(vector_bytes, threads)
    except (BackendError, OSError, MemoryError) as error:
        return _defaults(f"measuring them failed: {(str(error) or type(error).__name__).splitlines()[0]}")
    wrong = _implausible(found)
    if wrong:
        return _defaults(f"what was measured cannot be right: {wrong}")
    try:
        write_note(CEILINGS, facts, asdict(found))
    except OSError as error:
        log.warning("the machine's ceilings are measured again by the next process: they cannot be kept (%s)", error)
    return found


def _defaults(reason: str) -> Ceilings:
    log.warning("estimates reckon with the default ceilings of a machine: %s", reason)
    return replace(DEFAULT_CEILINGS, reason=reason)


def _noted(values: Any) -> Ceilings | None:
    """The ceilings that a note's values say; None (logged) where they are not those of any machine."""
    if values is None:
        return None
    try:
        found = Ceilings(**{**values, "one": Rates(**values["one"]), "team": Rates(**values["team"])})
        wrong = _implausible(found)
    except (TypeError, KeyError) as error:
        wrong = str(error)
    if not wrong:
        return found
    log.warning("the noted ceilings of this machine are not used: %s; they are measured again", wrong)
    return None


def _implausible(found: Ceilings) -> str:
    """Why these cannot be the ceilings of a machine; empty where they can."""
    for whose, rates in (("one thread", found.one), ("all threads", found.team)):
        for name, value in asdict(rates).items():
            if not math.isfinite(value) or not 1e7 < value < 1e16:
                return f"{name} of {whose} is {value:g} a second"
    if found.team.fmas < 0.3 * found.one.fmas:
        return f"all threads compute {found.team.fmas / found.one.fmas:.2f} times as fast as one"
    if found.one.l2 < 0.3 * found.one.memory:
        return "the second cache is slower than main memory"
    return "" if min(found.threads, found.l2_bytes, found.l3_bytes) > 0 else "a size of 0"


def _measured(vector_bytes: int, threads: int) -> Ceilings:
    """Every rate, of one thread and of all."""
    start = time.perf_counter()
    l2, l3 = _cache_bytes(2, DEFAULT_CEILINGS.l2_bytes), _cache_bytes(3, DEFAULT_CEILINGS.l3_bytes)
    low, high = _MEMORY_BYTES
    floats = min(max(l3, low), high) // 4
    source, result = np.ones(floats, np.float32), np.zeros(floats, np.float32)

    def rates(team: int) -> Rates:
        copied = partial(_copies, result, source, team, vector_bytes)
        return Rates(_fmas(team, vector_bytes, "float32", _SECONDS), copied(_PIECE, 1, _SECONDS),
                     copied(*_resident(l3 // 16 // team, l2), _SECONDS, team), copied(*_resident(l2 // 4, 0), _SECONDS, team))

    one = rates(1)
    found = Ceilings(one, rates(threads) if threads > 1 else one, threads, l2, l3, "")
    log.info("the machine's ceilings were measured in %.2f s: %s", time.perf_counter() - start, found)
    return found


def _resident(nbytes: int, above: int) -> tuple[int, int]:
    """Floats of a piece of about `nbytes` (more than `above`), and how often it is copied to take about a millisecond."""
    nbytes = max(nbytes, 2 * above, 16 << 10)
    return nbytes // 4, max(1, (8 << 20) // nbytes)


def _cache_bytes(level: int, default: int) -> int:
    """The size of a cache of the first core, where the system tells it."""
    for index in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        try:
            if int((index / "level").read_text(encoding="ascii")) == level:
                text = (index / "size").read_text(encoding="ascii").strip()
                return int(text.rstrip("KMG")) << {"K": 10, "M": 20, "G": 30}.get(text[-1:], 0)
        except (OSError, ValueError) as error:
            log.debug("the size of a cache is not told by %s: %s", index, error)
    return default


def _fmas(threads: int, vector_bytes: int, dtype: str, seconds: float) -> float:
    """Vectors multiplied and added a second."""
    out = np.zeros(2 + threads, dtype)
    call = _call(vector_bytes, dtype, 0, [out], (_ROUNDS, threads))
    return _SUMS * _ROUNDS * threads / _best(call, seconds)


def _copies(result: Array, source: Array, threads: int, vector_bytes: int, piece: int, times: int, seconds: float,
            pieces: int | None = None) -> float:
    """Bytes read and written a second; all pieces of the arrays, or the first few again and again."""
    there = source.size // piece
    count = there if pieces is None else min(pieces, there)  # of many threads the arrays have a piece for some
    call = _call(vector_bytes, "float32", 1, [result, source], (count, piece, times, threads))
    return 8 * count * piece * times / _best(call, seconds)


@lru_cache(maxsize=8)
def _addresses(_cache_dir: str, _compiler: str, vector_bytes: int, dtype: str) -> tuple[tuple[int, int], Any]:
    """Where the two functions are, and their library."""
    names = ("sc_measure_fma", "sc_measure_copy")
    source = render_kernel("ceilings.c.j2", c_type=dtypes.DTYPES[dtype].c_name, vector_bytes=vector_bytes, sums=_SUMS,
                           lanes=vector_bytes // dtypes.itemsize(dtype), fma_function=names[0], copy_function=names[1])
    fma, copy = build([Kernel(name, source) for name in names])
    return (fma.address, copy.address), fma.library


def _call(vector_bytes: int, dtype: str, which: int, arrays: Sequence[Array], sizes: Sequence[int]) -> Call:
    """A call of one of the functions that gives the seconds it took."""
    address = _addresses(config.cache_dir, config.compiler, vector_bytes, dtype)[0][which]
    function = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(address)
    buffers = (ctypes.c_void_p * len(arrays))(*(array.ctypes.data for array in arrays))
    numbers = (ctypes.c_int64 * len(sizes))(*sizes)

    def call() -> float:
        start = time.perf_counter()
        function(ctypes.addressof(buffers), ctypes.addressof(numbers))
        return time.perf_counter() - start

    return call


def _best(call: Call, seconds: float) -> float:
    """The shortest of at least three runs; they go on for `seconds`."""
    call()
    times: list[float] = []
    end = time.perf_counter() + seconds
    while len(times) < 3 or time.perf_counter() < end:
        times.append(call())
    return min(times)
