"""Selection by times that a device measures by its own clock: the emulator's here, in its plain mode."""
from __future__ import annotations

import gc

import numpy as np
import pytest

import symconv as sc
import symconv.tensor as T
from symconv.codegen.implementation import RefusedError
from symconv.config import config
from symconv.runtime import measure
from symconv.runtime.devices.find import find_device
from symconv.tensor import nnet


@pytest.fixture(autouse=True)
def notes(monkeypatch):
    """Nothing is known, and what is noted is kept here; short timing."""
    kept = {}

    def key(facts):
        return str(sorted(facts.items()))

    monkeypatch.setattr(measure, "_SECONDS", 0.002)
    monkeypatch.setattr(measure, "_known", {})
    monkeypatch.setattr(measure, "read_note", lambda kind, facts: kept.get(key(facts)))
    monkeypatch.setattr(measure, "write_note", lambda kind, facts, values: kept.update({key(facts): values}))
    with config.change(selection="measure"):
        yield kept


def convolution_step():
    """The step of a small convolution, chosen by measurement; and the function's result on ones."""
    x = T.tensor("x", "float32", (1, 4, 6, 6))
    filters = sc.shared(np.ones((4, 4, 3, 3), np.float32), shape=(4, 4, 3, 3))
    function = sc.compile([x], nnet.conv_fprop(x, filters), device="emulator")
    np.testing.assert_array_equal(function(np.ones((1, 4, 6, 6), np.float32)), 36)
    (step,) = [each for each in function.programs[0].steps if each.choice is not None and len(each.choice.candidates) > 1]
    return step


@pytest.mark.parametrize("which", [0, -1])
def test_the_fastest_measured_candidate_is_taken(monkeypatch, which):
    names = [each.name for each in convolution_step().choice.candidates if each.measured is not None]
    assert len(names) > 1
    monkeypatch.setattr(measure, "time_entrants", lambda asked, entrants, target, still: {
        each.implementation.name: 1.0 if each.implementation.name == names[which] else 2.0 for each in entrants})
    monkeypatch.setattr(measure, "_known", {})
    monkeypatch.setattr(measure, "read_note", lambda kind, facts: None)
    assert convolution_step().choice.name == names[which]


def test_answers_are_kept_by_problem_device_and_software(monkeypatch, notes):
    convolution_step()
    count = len(notes)
    (text,) = [text for text in notes if "fprop" in text.lower()]
    for fact in ("'device', 'emulator'", "'architecture', '90'", "software", "compiler", "kernels", "symconv"):
        assert fact in text
    monkeypatch.setattr(measure, "_known", {})
    monkeypatch.setattr(measure, "time_entrants", lambda *given: pytest.fail("it was noted"))
    convolution_step()
    assert len(notes) == count


def test_a_candidate_that_fails_is_out_with_its_reason(monkeypatch):
    refused = []
    real = measure._make_run

    def make_run(asked, entrant, target, still):
        if not refused or refused[0] == entrant.implementation.name:
            refused[:] = [entrant.implementation.name]
            raise RefusedError("the library changed its mind")
        return real(asked, entrant, target, still)

    monkeypatch.setattr(measure, "_make_run", make_run)
    choice = convolution_step().choice
    (out,) = [each for each in choice.candidates if each.name == refused[0]]
    assert "changed its mind" in out.refusal
    assert choice.name != refused[0]


def test_memory_of_the_measurement_is_given_back():
    device = find_device("emulator")
    gc.collect()
    before = device.memory_in_use()
    convolution_step()
    gc.collect()
    assert device.memory_in_use() <= before  # other tests' functions may have gone meanwhile


def test_a_workspace_over_the_limit_is_refused_where_another_candidate_keeps_it(monkeypatch):
    from symconv.runtime import select

    monkeypatch.setattr(measure, "time_entrants", lambda asked, entrants, target, still: {
        each.implementation.name: float(number + 1) for number, each in enumerate(entrants)})
    names = [each.name for each in convolution_step().choice.candidates if each.measured is not None]
    measure._known.clear()
    monkeypatch.setattr(select, "_workspace_bytes", lambda entrant, target: 2000 if entrant.implementation.name == names[0] else 10)
    with config.change(workspace_bytes=1000):
        choice = convolution_step().choice
    assert choice.name == names[1]
    assert "2,000 bytes of workspace" in next(each.refusal for each in choice.candidates if each.name == names[0])
    with config.change(workspace_bytes=0):
        assert convolution_step().choice.name == names[1]  # the least of them
