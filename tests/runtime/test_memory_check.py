"""check_memory finds values that are overwritten before their last reader, and nothing else."""
from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import symconv as sc
import symconv.tensor as T
from symconv.demo.network import make_network
from symconv.errors import FunctionError, InternalError
from symconv.runtime.step import Storage


def training_step(device: str) -> sc.Function:
    x, w = T.matrix("x", shape=(4, 6)), sc.shared(np.ones((6, 3), "float32"), name="w")
    cost = (T.tanh(T.dot(x, w)) ** 2).mean()
    moved = sc.shared(np.zeros((6, 3), "float32"), name="m")
    step = moved * 0.9 + sc.grad(cost, w)
    function = sc.compile([x], [cost, x.sum(axis=0)], updates=[(w, w - 0.1 * step), (moved, step)], device=device)
    function(np.ones((4, 6), "float32"))
    return function


@pytest.mark.parametrize("device", ["cpu", "emulator"])
def test_all_is_well(device: str) -> None:
    found = sc.check_memory(training_step(device))
    assert found.programs == 1
    assert found.steps >= 4
    assert "every step reads" in str(found)


def test_every_program_of_the_demo_is_looked_at() -> None:
    network = make_network(0)
    images, labels = np.zeros((8, 1, 28, 28), "float32"), np.zeros(8, "int64")
    network.train(images, labels)
    network.train(images[:3], labels[:3])
    assert sc.check_memory(network.train).programs == 2
    network.predict(images)
    network.predict(images)
    assert sc.check_memory(network.predict).steps > 3


def test_two_living_values_in_one_place_are_found() -> None:
    x = T.matrix("x", shape=(40, 60))
    function = sc.compile([x], [T.dot(T.dot(x, x.T) + T.dot(x, x.T * 2), x).sum()])
    sc.check_memory(function)
    slots = [slot for slot in function.kept[0].program.memory.slots if slot.last > slot.first]
    one, other = next((a, b) for a in slots for b in slots if a.first < b.first < a.last)
    other.storage.offset = one.storage.offset
    with pytest.raises(InternalError, match=r"would read temporary\d+, but step \d+ .* has written over it"):
        sc.check_memory(function)


def test_an_in_place_write_over_a_value_that_is_read_later_is_found() -> None:
    x = T.matrix("x", shape=(8, 8))
    square = T.dot(x, x)
    function = sc.compile([x], T.dot(T.dot(square, x), square))  # the first product is read by the last step
    steps = function.kept[0].program.steps
    first, second = steps[0].writes[0].storage, steps[1].writes[0].storage
    assert first in {place.storage for place in steps[2].reads}
    second.alias = first
    with pytest.raises(InternalError, match=f"writes {second} over its own input {first}"):
        sc.check_memory(function)
    steps[1].kernel = replace(steps[1].kernel, in_place=((0, 0),))  # as if the kernel allowed it: the last step still reads it
    steps[1].in_place.append(0)
    with pytest.raises(InternalError, match=rf"step 2 .* would read {first}, but step 1 .* has written over it"):
        sc.check_memory(function)


def test_an_update_that_comes_too_early_is_found() -> None:
    x, w = T.matrix("x", shape=(3, 3)), sc.shared(np.ones((3, 3), "float32"), name="w")
    function = sc.compile([x], T.dot(x, w).sum(), updates=[(w, w + 1)])
    function(np.ones((3, 3), "float32"))
    sc.check_memory(function)
    program = function.kept[0].program
    program.steps.sort(key=lambda step: not any(place.storage.home.kind == "shared" for place in step.writes))
    with pytest.raises(InternalError, match=r"would read shared\d+, but step 0"):
        sc.check_memory(function)


def test_a_workspace_over_a_living_value_is_found() -> None:
    x = T.matrix("x", shape=(8, 8))
    square = T.dot(x, x)
    function = sc.compile([x], T.dot(T.dot(square, x), square))
    steps = function.kept[0].program.steps
    square_storage = steps[0].writes[0].storage
    steps[1].kernel = replace(steps[1].kernel, workspace_bytes=256)
    steps[1].workspace = Storage("temporary", 99, 256, offset=square_storage.offset)
    with pytest.raises(InternalError, match=f"read {square_storage}|over its own input {square_storage}"):
        sc.check_memory(function)


def test_an_unwritten_value_is_found() -> None:
    function = training_step("cpu")
    program = function.kept[0].program
    del program.steps[program.n_prepared]
    with pytest.raises(InternalError, match="nothing has written it"):
        sc.check_memory(function)


def products() -> sc.Function:
    """Two products in the arena, a third of both as the result."""
    x = T.matrix("x", shape=(8, 8))
    return sc.compile([x], T.dot(T.dot(x, x), T.dot(x, x.T)))


def test_values_that_share_one_byte_are_found() -> None:
    function = products()
    steps = function.kept[0].program.steps
    first, second = (steps[number].writes[0].storage for number in (0, 1))
    for step in steps:  # their workspaces lie elsewhere, as long as these move
        step.workspace = None
    second.offset = first.offset + first.nbytes
    sc.check_memory(function)
    second.offset -= 1
    with pytest.raises(InternalError, match=f"would read {first}, but step 1 "):
        sc.check_memory(function)
    first.offset, second.offset = second.offset + second.nbytes - 1, second.offset
    with pytest.raises(InternalError, match=f"would read {first}, but step 1 "):
        sc.check_memory(function)


def test_a_result_that_a_later_step_writes_over_is_found() -> None:
    x = T.matrix("x", shape=(8, 8))
    function = sc.compile([x], [T.dot(x, x), T.dot(x, x.T)])
    steps = function.kept[0].program.steps
    first, second = (step.writes[0].storage for step in steps)
    sc.check_memory(function)
    second.alias = first
    with pytest.raises(InternalError, match=f"the end of the call would read {first}, but step 1 "):
        sc.check_memory(function)


def test_a_constant_that_is_written_over_is_found() -> None:
    x = T.matrix("x", shape=(8, 8))
    function = sc.compile([x], T.dot(T.dot(x, np.full((8, 8), 2, "float32")), x))
    program = function.kept[0].program
    ((constant, _),) = program.schedule.constants
    sc.check_memory(function)
    program.steps[1].writes[0].storage.alias = constant  # read for the last time by the step before
    with pytest.raises(InternalError, match=f"^step 1 writes over {constant}$"):
        sc.check_memory(function)


def test_a_value_of_the_call_before_is_not_there_any_more() -> None:
    """What is prepared in the first call must be kept: where it lies in the arena, the second call would find another's bytes."""
    x, w = T.matrix("x", shape=(8, 8)), sc.shared(np.ones((8, 8), "float32"), name="w")
    function = sc.compile([x], T.dot(T.exp(w), x))
    function(np.ones((8, 8), "float32"))
    program = function.kept[0].program
    assert program.n_prepared
    sc.check_memory(function)
    kept = program.steps[0].writes[0].storage
    assert kept.kind == "kept"
    kept.kind, kept.offset = "temporary", 1 << 20  # where nothing else is
    with pytest.raises(InternalError, match=f"would read {kept}, but nothing has written it"):
        sc.check_memory(function)


def test_only_the_input_that_a_kernel_may_share_is_written_in_place() -> None:
    """The kernel allows its first input; the planner has taken the second."""
    function = products()
    steps = function.kept[0].program.steps
    first, second = (place.storage for place in steps[2].reads)
    steps[2].kernel = replace(steps[2].kernel, in_place=((0, 0),))
    for step in steps:
        step.workspace = None
    steps[2].writes[0].storage.alias = first
    steps[2].in_place.append(0)
    sc.check_memory(function)
    steps[2].writes[0].storage.alias = second
    with pytest.raises(InternalError, match=f"over its own input {second}"):
        sc.check_memory(function)
    steps[2].writes[0].storage.alias = first
    steps[2].in_place.clear()  # allowed, but not what was planned
    with pytest.raises(InternalError, match=f"over its own input {first}"):
        sc.check_memory(function)


def test_without_a_program_it_says_so() -> None:
    x = T.vector("x")
    function = sc.compile([x], x + 1)
    with pytest.raises(FunctionError, match="no program whose memory"):
        sc.check_memory(function)
    function.prepare((3,))
    assert sc.check_memory(function).programs == 1
