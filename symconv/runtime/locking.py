"""Several locks held for one call, and let go whatever interrupts it.

`contextlib.ExitStack` is Python code: an interrupt of the user's between taking a lock and noting it would leave the lock taken for
ever, and every other thread waiting.  Here both are done by C code, between whose calls no interrupt arrives.
"""
from __future__ import annotations

import operator
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from itertools import compress
from typing import Any, TypeVar

Result = TypeVar("Result")


def holding(locks: Sequence[Any], run: Callable[[], Result]) -> Result:
    """What `run()` gives, called while all the locks are held; they are taken in the order given.

    The locks' `acquire()` returns True, as that of `threading.Lock` and `RLock` does.  A network has hundreds of parameters with
    a lock each, so what is done for one counts: an object made for each would take as long again as all the rest.

    >>> import threading
    >>> locks = [threading.RLock(), threading.RLock()]
    >>> holding(locks, lambda: [lock._is_owned() for lock in locks]), locks[0]._is_owned()
    ([True, True], False)
    """
    held: list[Any] = [None, None]  # one end for each of the two places that let go
    acquires, releases = [lock.acquire for lock in locks], [lock.release for lock in locks]
    taken = compress(releases, map(operator.call, acquires))  # gives a lock's release when the lock has been taken
    try:
        try:
            deque(map(held.append, taken), maxlen=0)
            return run()
        finally:
            _run_all(iter(held.pop, None))
    finally:
        _run_all(iter(held.pop, None))


def _run_all(calls: Iterable[Callable[[], Any]]) -> None:
    deque(map(operator.call, calls), maxlen=0)
