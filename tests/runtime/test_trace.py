"""Trace events have the times of the calls, one after the other, and the arena's bytes at each step."""
from __future__ import annotations

import numpy as np
import pytest

import symconv as sc
import symconv.tensor as T
from symconv.runtime.planned import PlannedProgram
from symconv.runtime.profile import Call, Profile
from symconv.runtime.trace import HOST, STEPS, Event, trace_of


def program(size: int) -> PlannedProgram:
    """Two products and a third of both: three steps, whose first two results lie in the arena beside each step's workspace."""
    x = T.matrix("x", shape=(size, size))
    function = sc.compile([x], T.dot(T.dot(x, x), T.dot(x, x.T)))
    function(np.ones((size, size), "float32"))
    return function.kept[0].program


def in_use(of: PlannedProgram, product: int) -> list[int]:
    """Bytes of the arena at each step: one product of so many bytes in the first, two in the others, and the workspace."""
    spaces = [0 if step.workspace is None else step.workspace.nbytes for step in of.steps]
    return [space + products * product for space, products in zip(spaces, (1, 2, 2), strict=True)]


def profile_of(*calls: Call) -> Profile:
    profile = Profile("f")
    profile.calls.extend(calls)
    return profile


def events_of(profile: Profile, thread: int, kind: str) -> list[Event]:
    return [each for each in trace_of(profile)["traceEvents"] if each["tid"] == thread and each["ph"] == kind]


@pytest.fixture
def two_calls() -> Profile:
    """Calls at 10 s and 11 s; in the second the first step is not run."""
    one = program(4)
    return profile_of(Call(one, 10.25, 0.5, np.array([0.125, 0.25, 0.0625]), 10.0, 10.75),
                      Call(one, 11.125, 0.5, np.array([0.0, 0.25, 0.125]), 11.0, 11.75))


def test_calls_and_programs_count_microseconds_from_the_first_call(two_calls: Profile) -> None:
    host = events_of(two_calls, HOST, "X")
    assert [(each["name"], each["ts"], each["dur"]) for each in host] == [
        ("call 0", 0, 750_000), ("program", 250_000, 500_000), ("call 1", 1_000_000, 750_000), ("program", 1_125_000, 500_000)]


def test_steps_follow_each_other_and_those_that_did_not_run_are_left_out(two_calls: Profile) -> None:
    steps = events_of(two_calls, STEPS, "X")
    assert [(each["args"]["step"], each["ts"], each["dur"]) for each in steps] == [
        (0, 250_000, 125_000), (1, 375_000, 250_000), (2, 625_000, 62_500),
        (1, 1_125_000, 250_000), (2, 1_375_000, 125_000)]


def test_the_arena_is_told_at_every_step_and_empty_at_the_end(two_calls: Profile) -> None:
    counters = events_of(two_calls, STEPS, "C")
    first, second, third = in_use(two_calls.calls[0].program, 64)  # 4 x 4 float32
    assert first < second
    assert [(each["ts"], each["args"]["bytes"]) for each in counters] == [
        (250_000, first), (375_000, second), (625_000, third), (687_500, 0),
        (1_125_000, second), (1_375_000, third), (1_500_000, 0)]


def test_each_call_shows_its_own_program() -> None:
    small, large = program(4), program(8)
    seconds = np.full(3, 0.125)
    profile = profile_of(Call(small, 0.0, 0.5, seconds, 0.0, 0.5), Call(large, 1.0, 0.5, seconds, 1.0, 1.5))
    assert [each["args"]["bytes"] for each in events_of(profile, STEPS, "C")] == [
        *in_use(small, 64), 0, *in_use(large, 256), 0]
    shapes = [each["args"]["inputs"][0] for each in events_of(profile, HOST, "X") if each["name"].startswith("call")]
    assert "4" in shapes[0]
    assert "8" in shapes[1]
