"""Groups of shared variables: one lock and one count for those that the same functions use, and nothing of the state is missed."""
from __future__ import annotations

import itertools
import random
import threading
import time
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest

import symconv as sc
import symconv.tensor as T
from symconv.runtime import function as function_module
from symconv.runtime import state_groups
from symconv.runtime.container import Container
from symconv.runtime.state_groups import EndedError, UsedState, groups_of, holding_groups, join


def containers(count: int) -> list[Container]:
    """Containers that no function uses yet."""
    return [Container(np.zeros(2)) for _ in range(count)]


def in_threads(*works: Callable[[], None]) -> None:
    """Run all at once, wait, and raise what one of them raised."""
    failures: list[BaseException] = []

    def run(work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive(), "a thread waits for ever"
    if failures:
        raise failures[0]


# Groups ------------------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("seed", range(20))
def test_functions_have_a_lock_in_common_exactly_where_they_share_state(seed: int) -> None:
    generator = random.Random(seed)
    all_of_them = containers(12)
    used = [generator.sample(all_of_them, generator.randint(1, 8)) for _ in range(6)]
    for each in used:
        assert join(each)
    for one, other in itertools.combinations(used, 2):
        assert bool(set(groups_of(one)) & set(groups_of(other))) == bool(set(one) & set(other))
    for each in used:
        signatures = {tuple(container in others for others in used) for container in each}
        assert len(groups_of(each)) == len(signatures)  # no more locks than needed


def test_what_the_same_functions_use_is_one_group() -> None:
    weights, velocities = containers(100), containers(100)
    join([*weights, *velocities])
    join(weights)
    join(weights[::-1])
    assert len(groups_of(weights)) == len(groups_of(velocities)) == 1
    assert len(groups_of([*weights, *velocities])) == 2


def test_who_waited_for_a_group_that_was_divided_takes_the_new_lock() -> None:
    first, second = containers(2)
    join([first, second])
    old, events = first.group, []
    with old.lock:
        waiter = threading.Thread(target=lambda: first.alone(lambda: events.append(first.group)))
        waiter.start()
        time.sleep(0.05)  # it waits for the old lock
        state_groups._divide([old], [first])
        new = first.group
        assert new is not old
        new.lock.acquire()
    time.sleep(0.05)
    assert events == []
    new.lock.release()
    waiter.join(10)
    assert events == [new]


@pytest.mark.parametrize("taken", [1, 2])
def test_nothing_is_run_under_the_lock_of_a_group_that_has_ended(taken: int) -> None:
    some = containers(4)
    join(some[:2])
    join(some[2:])
    old = groups_of(some)
    join([some[0]])
    with pytest.raises(EndedError):
        holding_groups(old[:taken], lambda: pytest.fail("it was run"))
    assert not any(group.lock._is_owned() for group in old)


def test_groups_are_not_divided_inside_of_a_call_that_uses_them() -> None:
    first, second = containers(2)
    join([first, second])
    group = first.group
    assert first.alone(lambda: join([first])) is False
    assert first.group is second.group is group
    assert join([first])
    assert first.group is not second.group


def test_a_function_that_is_called_once_divides_nothing() -> None:
    first, second = containers(2)
    join([first, second])
    state = UsedState([first])
    state.holding(lambda: None)
    assert first.group is second.group
    state.holding(lambda: None)
    assert first.group is not second.group


def test_a_value_set_inside_of_a_run_is_no_change_of_the_run() -> None:
    """As a step's own Python code may do."""
    (container,) = containers(1)
    state = UsedState([container])
    for inside, is_seen in ((lambda: None, False), (lambda: container.replace(np.ones(2)), True)):
        def run(inside: Callable[[], None] = inside) -> None:
            state.note()
            inside()
            state.count_change()

        state.holding(run)
        assert state.has_changed is is_seen


# Everything that changes state is seen by functions that have run before ---------------------------------------------------------

def changes() -> dict[str, Callable[[sc.SharedVariable], None]]:
    """Ways to give a vector of three elements another value."""
    def in_place(state: sc.SharedVariable) -> None:
        sc.compile([], None, updates=[(state, state * 2 + 1)])()

    def swapped(state: sc.SharedVariable) -> None:
        other = sc.shared(np.array([7, 8, 9], np.float32))
        sc.compile([], None, updates=[(state, other + 0), (other, state + 0)])()

    def borrowed(state: sc.SharedVariable) -> None:
        state.get_value(borrow=True)[1] = 11

    def lent(state: sc.SharedVariable) -> None:
        array = np.array([4, 5, 6], np.float32)
        state.set_value(array, borrow=True)
        array[0] = 40

    return {"set_value": lambda state: state.set_value(np.array([1, 2, 4], np.float32)),
            "another shape": lambda state: state.set_value(np.array([3], np.float32)),
            "zero": lambda state: state.zero(), "zero in the array": lambda state: state.zero(borrow=True),
            "an update in place": in_place, "a swapped update": swapped, "borrowed": borrowed, "lent": lent}


@pytest.mark.parametrize("prepared", [False, True])
@pytest.mark.parametrize("order", [1, -1])
def test_every_change_is_seen(prepared: bool, order: int) -> None:
    state = sc.shared(np.array([1, 2, 3], np.float32), "state")
    resting = sc.shared(np.array([10], np.float32), "resting")
    x = T.vector("x")
    value = T.dot(T.exp(state / 64), T.ones((3,))) if prepared else state.sum()
    function = sc.compile([x], value * x + resting)
    sizes = [np.ones(1, np.float32), np.ones(2, np.float32)]

    def check(what: str) -> None:
        now = state.get_value().astype(np.float64)
        if prepared and now.size != 3:
            return
        wanted = (np.exp(now / 64).sum() if prepared else now.sum()) + 10
        for _, each in itertools.product(range(2), sizes):
            np.testing.assert_allclose(function(each), np.full(len(each), wanted), rtol=1e-5, err_msg=what)

    check("at first")
    for what, change in list(changes().items())[::order] * 2:
        change(state)
        check(what)


def test_the_program_used_last_stands_last() -> None:
    x, state = T.vector("x"), sc.shared(np.float32(2))
    function = sc.compile([x], x * state)
    for size in (1, 2, 1, 2, 2, 1):
        function(np.ones(size, np.float32))
        assert function.programs[-1].inputs[0].type.shape == (size,)


def test_a_borrowed_array_is_looked_at_in_every_call() -> None:
    state = sc.shared(np.zeros(3, np.float32))
    function = sc.compile([], state * 1)
    function(), function()
    array = state.get_value(borrow=True)
    for number in range(3):
        array[:] = number
        assert function().tolist() == [number] * 3


def test_a_function_sees_what_it_wrote_itself() -> None:
    state, grown = sc.shared(np.zeros(3, np.float32)), sc.shared(np.zeros((1,), np.float32))
    function = sc.compile([], state.sum(), updates=[(state, state + 1), (grown, T.concatenate([grown, grown]))])
    for number in range(5):
        assert function() == 3 * number
        assert state.get_value().tolist() == [number + 1] * 3
        assert grown.get_value().shape == (2 ** (number + 1),)


def test_forgotten_programs_are_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(function_module, "MAX_PROGRAMS", 2)
    state = sc.shared(np.float32(2))
    x = T.vector("x")
    function = sc.compile([x], x * state)
    for size in (1, 2, 3, 1, 3, 2, 1):
        assert function(np.ones(size, np.float32)).tolist() == [2] * size
        assert len(function.programs) <= 2
        assert function.programs[-1].inputs[0].type.shape == (size,)
    function.free()
    assert function(np.ones(3, np.float32)).tolist() == [2] * 3


@pytest.mark.parametrize("trains", [False, True])
def test_a_call_does_nothing_for_each_variable_that_has_not_changed(trains: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    states = [sc.shared(np.full(3, number, np.float32)) for number in range(40)]
    x = T.vector("x")
    function = sc.compile([x], sum(state.sum() for state in states) * x,
                          updates=[(state, state + 1) for state in states] if trains else ())
    other = sc.compile([], sum(state.sum() for state in states))
    one = np.ones(1, np.float32)
    for _ in range(3):
        function(one), other()
    function(one)
    looks = []
    real = Container.array.fget
    monkeypatch.setattr(Container, "array", property(lambda self: looks.append(self) or real(self)))
    before = function(one)
    assert looks == []
    np.testing.assert_allclose(function(one) - before, [120 if trains else 0])
    states[7].set_value(np.zeros(3, np.float32))
    function(one)
    assert set(looks) >= {state.container for state in states}


# Threads -------------------------------------------------------------------------------------------------------------------------

SIZE = 200_000  # large enough that the C code of one call runs while another thread has Python's lock


def test_no_update_is_lost_while_functions_come_and_divide_groups() -> None:
    states = [sc.shared(np.zeros(SIZE, np.float32), f"s{number}") for number in range(6)]
    calls = np.zeros(6, np.int64)
    counting = threading.Lock()

    def work(seed: int) -> None:
        generator = random.Random(seed)
        for _ in range(4):
            chosen = generator.sample(range(6), generator.randint(1, 5))
            function = sc.compile([], None, updates=[(states[each], states[each] + 1) for each in chosen])
            for _ in range(6):
                function()
                with counting:
                    calls[chosen] += 1

    in_threads(*(partial(work, seed) for seed in range(4)))
    for state, count in zip(states, calls, strict=True):
        np.testing.assert_array_equal(state.get_value(), np.full(SIZE, count, np.float32))


def test_readers_see_whole_updates_and_the_newest_values() -> None:
    """Two variables are equal after every update; a third one is set from outside meanwhile."""
    one, two, scale = (sc.shared(np.zeros(SIZE, np.float32)) for _ in range(3))
    step = sc.compile([], None, updates=[(one, one + 1), (two, two + 1)])
    apart = sc.compile([], [abs(one - two).max(), (scale.max() - scale.min())])
    done = threading.Event()

    def write() -> None:
        try:
            for _ in range(40):
                step()
        finally:
            done.set()

    def set_scale() -> None:
        number = 0
        while not done.is_set():
            number += 1
            scale.set_value(np.full(SIZE, number, np.float32))
            assert apart()[1] == 0

    def read() -> None:
        while not done.is_set():
            assert [float(each) for each in apart()] == [0, 0]

    def split() -> None:
        while not done.is_set():
            for states in ([one], [one, scale], [two, scale]):
                function = sc.compile([], sum(state.max() for state in states))
                for _ in range(3):
                    function()

    in_threads(write, set_scale, read, split)
    assert one.get_value()[0] == two.get_value()[-1] == 40
