"""Interleaved timing on a GPU: a sample is several calls issued one behind the other and one wait, over their number."""
from __future__ import annotations

import gc
import time
from collections.abc import Callable

from comparison.contender import SYMCONV, Contender, Row, Timing
from comparison.timing import _build, _check

SAMPLE_SECONDS = 0.005  # of calls between two waits
TURN_SECONDS = 0.05
MOST_SAMPLES = 40


def time_row(row: Row, rounds: int, wait: Callable[[], None], say: Callable[[str], None]) -> Timing:
    """Build the contenders, compare what they compute, then time them in turns; what cannot be built is noted, symconv's too."""
    timing = Timing(row)
    try:
        contenders = _build(row, timing)
        _check(row, contenders, timing)
    except Exception as error:
        timing.failures[SYMCONV] = f"{type(error).__name__}: {' '.join(str(error).split())[:400]}"
        say(f"  {row.name}: {SYMCONV} left out: {timing.failures[SYMCONV]}")
        return timing
    for name, reason in timing.failures.items():
        say(f"  {row.name}: {name} left out: {reason}")
    counts = {each.name: _calls_in_a_sample(each, wait) for each in contenders}
    gc.collect()
    gc.disable()
    try:
        for number in range(rounds):
            for offset in range(len(contenders)):
                contender = contenders[(number + offset) % len(contenders)]
                timing.samples.setdefault(contender.name, []).extend(_turn(contender, counts[contender.name], wait))
    finally:
        gc.enable()
    return timing


def _calls_in_a_sample(contender: Contender, wait: Callable[[], None]) -> int:
    for _ in range(3):  # what is compiled, tried, recorded in the first calls
        contender.call()
    return max(1, min(1000, int(SAMPLE_SECONDS / _sample(contender, 3, wait))))


def _sample(contender: Contender, count: int, wait: Callable[[], None]) -> float:
    wait()
    start = time.perf_counter()
    for _ in range(count):
        contender.call()
    wait()
    return (time.perf_counter() - start) / count


def _turn(contender: Contender, count: int, wait: Callable[[], None]) -> list[float]:
    _sample(contender, count, wait)
    samples, end = [], time.perf_counter() + TURN_SECONDS
    while not samples or (time.perf_counter() < end and len(samples) < MOST_SAMPLES):
        samples.append(_sample(contender, count, wait))
    return samples
