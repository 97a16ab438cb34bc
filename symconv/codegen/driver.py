"""Runs a list of built kernels in one C call that holds no lock of Python's (`templates/driver.c.j2`)."""
from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ..config import config
from .compiler import find_compiler
from .templates import render_kernel
from .toolchain import build_sources

Array = np.ndarray[Any, Any]
Reference = tuple[int, int]


class _Step(ctypes.Structure):
    """`sc_step` of driver.c.j2, whose pointers have the size that this machine's have."""

    _fields_ = [("kernel", ctypes.c_void_p), ("references", ctypes.c_void_p), ("n_references", ctypes.c_int64),
                ("sizes", ctypes.c_void_p)]


_STEP = np.dtype(_Step)


class _Fork:
    """Whether this process is a forked child: GNU OpenMP's threads do not survive a fork, and waiting for them hangs."""

    child = False


def _mark_child() -> None:
    _Fork.child = True


os.register_at_fork(after_in_child=_mark_child)


def kernel_threads() -> int:
    """How many threads kernels may use in this process (0: as many as there are)."""
    if _Fork.child:
        compiler = find_compiler()
        if compiler is not None and not compiler.has_pool:
            return 1
    return int(config.value("threads"))


@lru_cache(maxsize=4)
def _run_function(cache_dir: str, compiler: str) -> Any:
    """`sc_run`, typed; kept by the settings that its library depends on."""
    source = render_kernel("driver.c.j2")
    function = build_sources([source])[source].sc_run
    function.restype = ctypes.c_int64
    function.argtypes = [ctypes.c_void_p]
    return function


def _data_offset() -> int:
    """How far into an array object NumPy keeps the address of its elements (the first field after Python's own)."""
    offset = object.__basicsize__
    array = np.zeros(1)
    if sys.implementation.name != "cpython" or ctypes.c_void_p.from_address(id(array) + offset).value != array.ctypes.data:
        return -1
    return offset


DATA_OFFSET = _data_offset()


def data_address(array: Array) -> int:
    """The address of an array's first element."""
    if DATA_OFFSET < 0:
        return int(array.ctypes.data)
    return ctypes.c_void_p.from_address(id(array) + DATA_OFFSET).value or 0


class _Call(ctypes.Structure):
    """`sc_call` of driver.c.j2."""

    _fields_ = [("steps", ctypes.c_void_p), ("first", ctypes.c_int64), ("n_steps", ctypes.c_int64),
                ("storages", ctypes.c_void_p), ("pointers", ctypes.c_void_p), ("arrays", ctypes.c_void_p),
                ("n_arrays", ctypes.c_int64), ("first_array", ctypes.c_int64), ("data_offset", ctypes.c_int64),
                ("threads", ctypes.c_int64), ("seconds", ctypes.c_void_p), ("is_finished", ctypes.c_int64)]


class CompiledProgram:
    """Steps ready to run: each is a kernel's address, its buffers as (storage, byte offset), and its run-time numbers.

    The caller keeps the kernels' libraries alive, and calls from one thread at a time.  Storages from `first_array` on are NumPy
    arrays whose objects' ids `arrays` holds at each call; the others are addresses that stand in `storages`.
    """

    def __init__(self, steps: Sequence[tuple[int, Sequence[Reference], Sequence[int]]], storages: Any, arrays: Any = None,
                 first_array: int = 0) -> None:
        self.n_steps = len(steps)
        references = [reference for _, step_references, _ in steps for reference in step_references]
        self._references = np.array(references or [(0, 0)], np.int64).reshape(-1, 2)
        self._sizes = np.array([size for _, _, sizes in steps for size in sizes] or [0], np.int64)
        self._steps = np.zeros(max(1, self.n_steps), _STEP)
        reference_at, size_at = self._references.ctypes.data, self._sizes.ctypes.data
        for number, (address, step_references, sizes) in enumerate(steps):
            self._steps[number] = (address, reference_at, len(step_references), size_at)
            reference_at += 16 * len(step_references)
            size_at += 8 * len(sizes)
        self._pointers = (ctypes.c_void_p * max([len(step_references) for _, step_references, _ in steps], default=1))()
        self._storages, self._arrays = storages, arrays
        n_arrays = 0 if arrays is None or DATA_OFFSET < 0 else len(arrays)
        self._call = _Call(int(self._steps.ctypes.data), 0, self.n_steps, ctypes.addressof(storages),
                           ctypes.addressof(self._pointers), ctypes.addressof(arrays) if n_arrays else 0, n_arrays, first_array,
                           DATA_OFFSET, 0, None, 0)
        self._threads = self._first = 0
        self._call_at = ctypes.addressof(self._call)
        self._function = _run_function(config.cache_dir, config.compiler)

    @property
    def is_finished(self) -> bool:
        """Whether a call has come to its end since this was set to False. The C call itself says so."""
        return bool(self._call.is_finished)

    @is_finished.setter
    def is_finished(self, value: bool) -> None:
        self._call.is_finished = value

    def run(self, seconds: Array | None = None, first: int = 0, last: int | None = None) -> tuple[int, int] | None:
        """Run the steps from `first` up to `last`.

        None, or (step, code) of the first step that met an error, after which nothing is run.  `seconds`, a float64 array with a
        place for every step, gets the time that each took.
        """
        call, threads = self._call, kernel_threads()
        if threads != self._threads:
            call.threads = self._threads = threads
        if seconds is not None or first != self._first or last is not None:
            call.first, call.n_steps = first, self.n_steps if last is None else last
            call.seconds = None if seconds is None else seconds.ctypes.data
            result = self._function(self._call_at)
            self._first, call.n_steps, call.seconds = first, self.n_steps, None
        else:
            result = self._function(self._call_at)
        return divmod(result, 256) if result else None
