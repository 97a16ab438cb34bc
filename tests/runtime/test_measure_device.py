"""Selection by times that a device measures by its own clock: the emulator's here, in its plain mode."""
from __future__ import annotations

import gc
from dataclasses import replace

import numpy as np
import pytest

import symconv as sc
import symconv.tensor as T
from symconv.codegen.cuda.elementwise import copy_plan
from symconv.codegen.cuda.kernel import WORKSPACE, workspace_part
from symconv.codegen.implementation import RefusedError
from symconv.codegen.kernel import Operand
from symconv.config import config
from symconv.runtime import measure, measure_device
from symconv.runtime.devices.find import find_device
from symconv.runtime.targets import make_target
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


def test_times_are_asked_anew_where_what_they_depend_on_has_changed():
    target = make_target("emulator")
    facts = measure_device.device_facts(target)
    for changes in ({"workspace_bytes": 1 << 20}, {"dnn__workspace_bytes": 1 << 20}, {"precision": "tf32"}):
        with config.change(**changes):
            assert measure_device.device_facts(target) != facts, changes
    assert measure_device.device_facts(target) == facts


@pytest.fixture
def run():
    """A run of nothing yet on the emulator."""
    made = measure_device.DeviceRun.__new__(measure_device.DeviceRun)
    made.device, made._once, made._always, made._kept = find_device("emulator"), [], [], []
    return made


MATRIX = Operand.contiguous("float32", (3, 4))


def test_inputs_that_lie_backwards_begin_at_their_first_element(run):
    backwards = Operand("float32", (3, 4), (-4, -1))
    span = run._filled(backwards, 0)
    assert (span.pointer, span.nbytes) == (11 * 4, 12 * 4)
    assert run._filled(MATRIX, 0).pointer == 0


@pytest.mark.parametrize("still", [frozenset(), frozenset((1,))])
def test_what_comes_of_resting_state_is_made_once(run, still):
    reads = [run._filled(MATRIX, 0), run._filled(MATRIX, 1)]
    before = list(reads)
    run._made_by(copy_plan(MATRIX), 1, MATRIX.nbytes, reads, still)
    assert (bool(run._once), bool(run._always)) == (bool(still), not still)
    assert reads[0] is before[0]
    assert reads[1] is not before[1]


def test_memory_of_a_trial_is_given_back(run):
    reads, plan = [run._filled(MATRIX, 0), run._filled(MATRIX, 1)], replace(copy_plan(MATRIX), workspace_bytes=4096)
    held = list(run._kept)
    assert run._trial_seconds(plan, reads) > 0
    assert run._kept == held


def test_parts_of_a_workspace_lie_behind_each_other(run, monkeypatch):
    found = {}
    monkeypatch.setattr(measure_device, "plan_actions", lambda device, plan, spans: found.update(spans) or [])
    run._actions(replace(copy_plan(MATRIX), workspace_bytes=192, parts=((0, 64), (64, 128))), [])
    parts = [found[workspace_part(number)] for number in range(2)]
    assert [(each.start, each.stop, each.pointer) for each in parts] == [(0, 64, 0), (64, 192, 64)]
    assert {id(each.buffer) for each in parts} == {id(found[WORKSPACE].buffer)}


def test_times_depend_on_the_text_of_every_kernel_for_gpus(monkeypatch, tmp_path):
    """A template that was changed, wherever it lies, is timed anew."""
    folders = ("", "cuda", "cudnn", "templates/cuda")
    for folder in folders:
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
        (tmp_path / folder / "one.j2").write_text("as it was")
    monkeypatch.setattr(measure_device.resources, "files", lambda package: tmp_path)
    digests = {measure_device._kernels_digest.__wrapped__()}
    for folder in folders:
        (tmp_path / folder / "one.j2").write_text("changed")
        digests.add(measure_device._kernels_digest.__wrapped__())
    assert len(digests) == 5
