"""Interleaved timing: in every round each contender has a turn, so that what else the machine does meets all alike."""
from __future__ import annotations

import gc
import time
from collections.abc import Callable

import numpy as np

from .contender import SYMCONV, Array, Contender, Row, Timing

TURN_SECONDS = 0.03  # a turn repeats short calls for about this long
PAUSE_SECONDS = 0.1  # before a turn: threads of the one before (ONNX Runtime's above all) may still be spinning
WARM_SECONDS = 0.01  # of calls that are not counted: after the pause the processor's clock and caches are those of an idle one
MAX_CALLS = 50
SLOW_SECONDS, SLOW_ROUNDS = 1.0, 3  # calls that take longer than this are timed in few rounds only


def time_row(row: Row, rounds: int, say: Callable[[str], None]) -> Timing:
    """Build the contenders, compare what they compute, then time them in turns.

    A peer that cannot be built or fails is noted in `failures` and left out; symconv's errors, and results that differ, are
    raised.
    """
    timing = Timing(row)
    contenders = _build(row, timing)
    _check(row, contenders, timing)
    for name in timing.failures:
        say(f"  {row.name}: {name} left out: {timing.failures[name]}")
    gc.collect()
    gc.disable()
    try:
        for number in range(rounds):
            for offset in range(len(contenders)):
                contender = contenders[(number + offset) % len(contenders)]
                if number < SLOW_ROUNDS or timing.median(contender.name) < SLOW_SECONDS:
                    _turn(contender, timing)
    finally:
        gc.enable()
    return timing


def _build(row: Row, timing: Timing) -> list[Contender]:
    contenders = []
    for name, builder in row.builders.items():
        try:
            contenders.append(builder())
        except Exception as error:
            if name == SYMCONV:
                raise
            timing.failures[name] = _one_line(error)
    timing.notes.update({each.name: each.note for each in contenders if each.note})
    return contenders


def _check(row: Row, contenders: list[Contender], timing: Timing) -> None:
    """Every contender must compute what the first one does."""
    wanted = None
    for each in list(contenders):
        try:
            found = [array for _ in range(row.checked_calls) for array in each.read(each.call())]
        except Exception as error:
            if each.name == SYMCONV:
                raise
            timing.failures[each.name] = _one_line(error)
            contenders.remove(each)
            continue
        if wanted is None:
            wanted = found
        for one, other in zip(wanted, found, strict=True):
            _compare(f"{row.name}: {each.name} and {contenders[0].name}", one, other, row.tolerance)


def _compare(what: str, one: Array, other: Array, tolerance: float) -> None:
    if one.shape != other.shape:
        raise AssertionError(f"{what} give results of the shapes {other.shape} and {one.shape}")
    error = float(np.abs(one - other).max(initial=0) / max(float(np.abs(one).max(initial=0)), 1e-30))
    if not error <= tolerance:
        raise AssertionError(f"{what} differ by {error:.2g} of the largest value")


def _one_line(error: Exception) -> str:
    return f"{type(error).__name__}: {(str(error).strip().splitlines() or [''])[0]}"


def _turn(contender: Contender, timing: Timing) -> None:
    """Calls that are not counted (two at least), then calls for a while."""
    time.sleep(PAUSE_SECONDS)
    samples = timing.samples.setdefault(contender.name, [])
    call = contender.call
    call()
    end = time.perf_counter() + WARM_SECONDS
    call()
    while time.perf_counter() < end:
        call()
    end = time.perf_counter() + TURN_SECONDS
    for _ in range(MAX_CALLS):
        start = time.perf_counter()
        result = call()
        stop = time.perf_counter()
        samples.append(stop - start)
        del result
        if stop > end:
            break
