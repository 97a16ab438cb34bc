"""Several locks held for one call: order, release after every end, and nothing left taken where taking fails half-way."""
from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from symconv.runtime.locking import holding


class Recorder:
    """A lock that notes what is done with it; `failure` is raised instead of taking it."""

    def __init__(self, name: str, notes: list[str], failure: BaseException | None = None) -> None:
        self.name, self.notes, self.failure = name, notes, failure

    def acquire(self) -> bool:
        """Take it."""
        if self.failure is not None:
            raise self.failure
        self.notes.append(f"take {self.name}")
        return True

    def release(self) -> None:
        """Let it go."""
        self.notes.append(f"leave {self.name}")


def test_locks_are_taken_in_order_and_let_go_after_the_run() -> None:
    notes: list[str] = []
    assert holding([Recorder(name, notes) for name in "abc"], lambda: notes.append("run")) is None
    assert notes == ["take a", "take b", "take c", "run", "leave c", "leave b", "leave a"]


@pytest.mark.parametrize("failure", [ValueError("no"), KeyboardInterrupt()])
def test_an_interrupt_while_taking_lets_go_what_was_taken(failure: BaseException) -> None:
    notes: list[str] = []
    locks = [Recorder("a", notes), Recorder("b", notes), Recorder("c", notes, failure), Recorder("d", notes)]
    with pytest.raises(type(failure)):
        holding(locks, lambda: notes.append("run"))
    assert notes == ["take a", "take b", "leave b", "leave a"]


def test_an_error_of_the_run_lets_go_all_locks() -> None:
    locks = [threading.RLock() for _ in range(300)]

    def fail() -> None:
        raise ValueError("of the run")

    with pytest.raises(ValueError, match="of the run"):
        holding(locks, fail)
    assert [can_be_taken(lock) for lock in locks] == [True] * 300


def test_a_lock_named_twice_is_taken_and_let_go_twice() -> None:
    lock = threading.RLock()
    assert holding([lock, lock], lambda: can_be_taken(lock)) is False
    assert can_be_taken(lock)


def can_be_taken(lock: threading.RLock) -> bool:
    """Whether another thread could take the lock now."""
    answers: list[bool] = []

    def try_it() -> None:
        answers.append(lock.acquire(blocking=False))
        if answers[0]:
            lock.release()

    run_in_thread(try_it)
    return answers[0]


def run_in_thread(work: Callable[[], None]) -> None:
    """Do it in another thread and wait."""
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
