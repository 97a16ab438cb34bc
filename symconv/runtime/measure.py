"""Measure: the candidates for a problem timed on random data, and the answer kept for this process and on disk.

Each candidate runs as it would in a program, in one C call: the copies of inputs whose strides it does not take, the steps that
bring inputs into another form, its kernel.  What only depends on state that the function does not update is not counted.  An
answer holds for one problem (with its strides), one machine (or device and its software), compiler, number of threads and version
of symconv (and of the files that generate kernels), and for these candidates; nothing is timed twice for it, in this process or
another.  Kernels load without asking for alignment, so addresses are not part of a problem.
"""
from __future__ import annotations

import ctypes
import hashlib
import logging
import math
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import Any, Protocol

import numpy as np

from .. import dtypes
from ..codegen.driver import CompiledProgram, Reference
from ..codegen.elementwise import copy_kernel
from ..codegen.implementation import AnyImplementation, RefusedError
from ..codegen.kernel import Kernel, Operand, Problem
from ..codegen.notes import MEASURED, machine_facts, read_note, write_note
from ..codegen.toolchain import build
from ..config import config
from ..errors import InternalError
from ..ops.convolution import Conv
from ..target import Target

Array = np.ndarray[Any, Any]
log = logging.getLogger("symconv.runtime")
_SECONDS = 0.03  # for each candidate that is not much slower than the fastest
_ROUNDS = (3, 40)
_SAMPLE_SECONDS = 50e-6  # a shorter kernel is called several times for one sample
_MUCH_SLOWER = 3.0
_ALIGNMENT = 64
_known: dict[Any, Times] = {}
_lock = threading.RLock()


@dataclass(frozen=True, slots=True)
class Entrant:
    """A candidate that takes the problem: as it sees it, with the inputs that are copied for it first."""

    implementation: AnyImplementation
    problem: Problem
    copied: tuple[int, ...]


class Run(Protocol):
    """One candidate with memory of its own, ready to be called."""

    def warm(self) -> float:
        """Make what is made once, run twice; the seconds of the second run."""
        ...

    def seconds(self, times: int) -> float:
        """The mean of so many calls in a row."""
        ...


Times = dict[str, float | str]
"""By the candidates' names their median seconds, or why one could not be timed."""


def measured_seconds(asked: Problem, entrants: Sequence[Entrant], target: Target, still: frozenset[int]) -> Times:
    """The median seconds of each entrant by its name; `still` are the inputs made of state that the function does not update.

    One that fails when it runs on a device (cuDNN may refuse a plan that it has built) has the reason in its place.

    Raises:
        MemoryError: the arrays of the problem cannot be held once more.
    """
    names = tuple(each.implementation.name for each in entrants)
    key = (asked, names, target, still, config.threads, config.cache_dir, config.compiler)
    with _lock:
        if key not in _known:
            _known[key] = _noted_or_timed(asked, entrants, target, still)
        return _known[key]


def problem_text(problem: Problem) -> str:
    """A problem in words: the op, and of each operand dtype, shape, and strides where they are not row-major.

    >>> from symconv.ops.linalg import MatMul
    >>> tall = Operand.contiguous("float32", (8, 2))
    >>> problem_text(Problem(MatMul(), (tall, Operand("float32", (2, 3), (1, 2))), (Operand.contiguous("float32", (8, 3)),)))
    'matmul: float32[8,2], float32[2,3] strides (1,2) -> float32[8,3]'
    """
    op = problem.op
    name = str(op.problem(problem.inputs, problem.outputs[0])) if isinstance(op, Conv) else str(op)
    return (f"{name}: {', '.join(map(_operand_text, problem.inputs))} -> "
            f"{', '.join(map(_operand_text, problem.outputs))}")


def _operand_text(operand: Operand) -> str:
    strides = "" if operand.is_contiguous else f" strides ({','.join(map(str, operand.strides))})"
    return f"{operand.dtype}[{','.join(map(str, operand.shape))}]{strides}"


def _noted_or_timed(asked: Problem, entrants: Sequence[Entrant], target: Target, still: frozenset[int]) -> Times:
    names = [each.implementation.name for each in entrants]
    facts = {**_facts(target), "problem": problem_text(asked),
             "operation": hashlib.sha256(repr(asked.op).encode()).hexdigest(), "candidates": ", ".join(names),
             "state": ", ".join(f"i{position}" for position in sorted(still)) or "none"}
    noted: Any = read_note(MEASURED, facts)
    if _is_answer(noted, names):
        return dict(noted)
    if noted is not None:
        log.warning("the noted times of %s are not used: %r are not times of %s; they are measured again", facts["problem"],
                    noted, facts["candidates"])
    start = time.perf_counter()
    found = time_entrants(asked, entrants, target, still)
    log.info("measured %s in %.2f s: %s", facts["problem"], time.perf_counter() - start,
             ", ".join(f"{name} {_seconds_text(seconds)}" for name, seconds in found.items()))
    try:
        write_note(MEASURED, facts, found)
    except OSError as error:
        log.warning("the times of %s are measured again by the next process: they cannot be kept (%s)", facts["problem"], error)
    return found


def _facts(target: Target) -> dict[str, str]:
    """What times depend on beside the problem."""
    if target.device != "cpu":
        from .measure_device import device_facts

        return device_facts(target)
    return {**machine_facts(), "kernels": _kernels_digest(), "threads": str(target.threads), "vectors": str(target.vector_bytes)}


def _seconds_text(seconds: float | str) -> str:
    return seconds if isinstance(seconds, str) else f"{seconds * 1e3:.4g} ms"


@lru_cache(maxsize=1)
def _kernels_digest() -> str:
    """A digest of all that generates kernels: one that was changed is timed anew."""
    folder = resources.files("symconv.codegen")
    digest = hashlib.sha256()
    for part in (folder, folder / "templates"):
        for file in sorted((each for each in part.iterdir() if each.is_file()), key=lambda each: each.name):
            digest.update(file.name.encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:16]


def _is_answer(values: Any, names: Sequence[str]) -> bool:
    return (isinstance(values, dict) and set(values) == set(names)
            and all(isinstance(each, str) or (isinstance(each, float) and math.isfinite(each) and each > 0)
                    for each in values.values()))


def time_entrants(asked: Problem, entrants: Sequence[Entrant], target: Target, still: frozenset[int]) -> Times:
    """The median seconds of each; they take turns, so that what disturbs the machine meets them all."""
    runs, first, failed = _warmed(asked, entrants, target, still)
    limit = _MUCH_SLOWER * min(first.values(), default=0.0)
    left = [(name, run, max(1, int(_SAMPLE_SECONDS / max(first[name], 1e-7)))) for name, run in runs if first[name] <= limit]
    samples: dict[str, list[float]] = {name: [] for name, *_ in left}
    end = time.perf_counter() + _SECONDS * len(left)
    for number in range(_ROUNDS[1]):
        if number >= _ROUNDS[0] and time.perf_counter() > end:
            break
        for name, run, times in left:
            samples[name].append(run.seconds(times))
    return {**{name: float(np.median(samples[name])) if name in samples else first[name] for name in first}, **failed}


def _warmed(asked: Problem, entrants: Sequence[Entrant], target: Target, still: frozenset[int],
            ) -> tuple[list[tuple[str, Run]], dict[str, float], dict[str, str]]:
    """Those that run, the seconds of a run of each, and why the others do not."""
    runs: list[tuple[str, Run]] = []
    first: dict[str, float] = {}
    failed: dict[str, str] = {}
    for entrant in entrants:
        name = entrant.implementation.name
        try:
            run = _make_run(asked, entrant, target, still)
            first[name] = run.warm()
        except RefusedError as error:
            failed[name] = " ".join(str(error).split())
            continue
        runs.append((name, run))
    return runs, first, failed


def _make_run(asked: Problem, entrant: Entrant, target: Target, still: frozenset[int]) -> Run:
    if target.device == "cpu":
        return _Run(asked, entrant, target, still)
    from .measure_device import DeviceRun

    return DeviceRun(asked, entrant, target, still)


class _Run:
    """One candidate with arrays of its own, ready to be called."""

    def __init__(self, asked: Problem, entrant: Entrant, target: Target, still: frozenset[int]) -> None:
        self.arrays: list[Array] = []
        self.addresses: list[int] = []
        once: list[tuple[Kernel, list[Reference]]] = []
        always: list[tuple[Kernel, list[Reference]]] = []
        implementation, problem = entrant.implementation, entrant.problem
        outputs = [self._bytes(operand.nbytes) for operand in problem.outputs]
        reads = [self._filled(operand) for operand in asked.inputs]

        def made_by(kernel: Kernel, position: int, nbytes: int) -> None:
            place = self._bytes(nbytes)
            (once if position in still else always).append((kernel, [place, reads[position]]))
            reads[position] = place

        for position in entrant.copied:
            made_by(copy_kernel(asked.inputs[position], target), position, asked.inputs[position].nbytes)
        for preparation in implementation.prepare(problem, target):
            made_by(preparation.kernel, preparation.position, preparation.result.nbytes)
        always.append((implementation.build(problem, target), [*outputs, *reads]))
        self._compile(once, always)

    def _compile(self, once: list[tuple[Kernel, list[Reference]]], always: list[tuple[Kernel, list[Reference]]]) -> None:
        steps, self.first = [*once, *always], len(once)
        self.built = build([kernel for kernel, _ in steps])  # kept: the addresses are theirs
        calls = []
        for (kernel, references), built in zip(steps, self.built, strict=True):
            workspace = [self._bytes(kernel.workspace_bytes)] if kernel.workspace_bytes else []
            calls.append((built.address, [*references, *workspace], kernel.sizes))
        self.storages = (ctypes.c_void_p * max(1, len(self.addresses)))(*self.addresses)
        self.program = CompiledProgram(calls, self.storages)

    def _bytes(self, nbytes: int) -> Reference:
        array = np.zeros(nbytes + _ALIGNMENT, np.uint8)
        self.arrays.append(array)
        self.addresses.append(-(-array.ctypes.data // _ALIGNMENT) * _ALIGNMENT)
        return len(self.addresses) - 1, 0

    def _filled(self, operand: Operand) -> Reference:
        """An array as it would lie in memory: normal numbers where it holds floats, else zeros (which are valid indices)."""
        lows, highs = zip((0, 0), *(sorted((0, (size - 1) * stride))
                                    for size, stride in zip(operand.shape, operand.strides, strict=True)), strict=True)
        low, high = (sum(lows), sum(highs)) if operand.size else (0, 0)
        itemsize = dtypes.itemsize(operand.dtype)
        storage, _ = self._bytes((high - low + 1) * itemsize)
        if operand.dtype in ("float16", "float32", "float64"):
            start = self.addresses[storage] - self.arrays[storage].ctypes.data
            values = self.arrays[storage][start:start + (high - low + 1) * itemsize].view(operand.dtype)
            values[...] = np.resize(np.random.default_rng(0).standard_normal(4099).astype(operand.dtype), values.shape)
        return storage, -low * itemsize

    def warm(self) -> float:
        """Make what is made once, run twice; the seconds of the second run."""
        self._call(0)
        return self.seconds(1)

    def seconds(self, times: int) -> float:
        """The mean of so many calls in a row."""
        start = time.perf_counter()
        for _ in range(times):
            self._call(self.first)
        return (time.perf_counter() - start) / times

    def _call(self, first: int) -> None:
        failure = self.program.run(None, first)
        if failure is not None:
            raise InternalError(f"a kernel ended with the code {failure[1]} on random data")
