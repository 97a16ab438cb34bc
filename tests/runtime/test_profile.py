"""Profiles: where the time goes, sums over programs of several shapes, memory, traces; and no cost where nothing is profiled."""
from __future__ import annotations

import json

import numpy as np
import pytest

import symconv as sc
import symconv.tensor as T
from symconv.codegen.driver import CompiledProgram
from symconv.runtime.profile import MAX_TRACED, Profile
from symconv.runtime.profile_rows import live_bytes
from symconv.tensor import nnet


def network(**options):
    images = T.tensor4("images", "float32", shape=(None, 2, 8, 8))
    filters = sc.shared(np.ones((4, 2, 3, 3), "float32"), "filters", shape=(4, 2, 3, 3))
    hidden = nnet.relu(nnet.conv2d(images, filters))
    return sc.compile([images], T.exp(hidden).sum(axis=(1, 2, 3)), name="network", **options)


def images(count):
    return np.ones((count, 2, 8, 8), "float32")


def test_the_parts_of_the_time_add_up():
    function = network(profile=True)
    for count in (2, 2, 3):
        function(images(count))
    seconds = function.profile.seconds()
    assert seconds["calls"] == pytest.approx(seconds["python"] + seconds["between_steps"] + seconds["steps"])
    assert min(seconds.values()) >= 0
    assert seconds["python"] > 0
    assert seconds["steps"] > 0
    assert seconds["making"] > 0
    assert seconds["making"] not in (seconds["calls"], seconds["python"])


def test_tables_add_up_over_programs_of_several_shapes():
    function = network(profile=True)
    for count in (2, 2, 3):
        function(images(count))
    found = function.profile.as_dict()
    assert [program["calls"] for program in found["programs"]] == [2, 1]
    assert found["calls"] == 3
    total = sum(row["seconds"] for program in found["programs"] for row in program["steps"])
    for table in ("by_operation", "by_line"):
        assert sum(row["seconds"] for row in found[table]) == pytest.approx(total)
        assert sum(row["share"] for row in found[table]) == pytest.approx(1)
    conv = next(row for row in found["by_operation"] if row["what"] == "Conv fprop")
    assert conv["seconds"] == pytest.approx(sum(row["seconds"] for program in found["programs"] for row in program["steps"]
                                                if row["operation"] == "Conv fprop"))
    assert "test_profile.py:21" in str(function.profile)
    assert json.loads(json.dumps(found)) == found


def test_rates_are_those_of_the_problem():
    function = network(profile=True)
    function.prepare((2, 2, 8, 8))
    program = function.programs[-1]
    function.profile.note(program, 1.0, np.full(len(program.steps), 1e-3))
    row = next(row for row in function.profile.rows_of(program) if row.operation == "Conv fprop")
    assert row.problem.startswith("fprop n2 c2 h8 w8 k4 r3 s3")
    assert row.gflops == pytest.approx(2 * 2 * 4 * 6 * 6 * 2 * 9 / 1e-3 / 1e9)  # 2 n k p q c r s
    assert row.roofline is not None
    assert 0 < row.roofline < 1
    assert row.bytes == 2 * 4 * 6 * 6 * 4


def test_steps_that_did_not_run_do_not_count():
    state = sc.shared(np.zeros((3, 4), "float32"), "W")
    x = T.matrix("x")
    function = sc.compile([x], T.dot(x, T.exp(state)), profile=True)
    for _ in range(4):
        function(np.ones((2, 3), "float32"))
    first, second = function.profile.rows_of(function.programs[-1])
    assert (first.runs, second.runs) == (1, 4)
    assert first.seconds_each == first.seconds


def test_live_bytes_follow_the_plan():
    x = T.matrix("x", "float64", shape=(64, 64))
    program = sc.compile([x], T.dot(T.exp(T.dot(x, x)), T.dot(x, x + 1))).programs[-1]
    live = live_bytes(program)
    for position in range(len(program.steps)):
        slots = program.memory.slots
        assert live.at[position] == sum(slot.nbytes for slot in slots if slot.first <= position <= slot.last)
        assert live.after[position] == sum(slot.nbytes for slot in slots if slot.first <= position < slot.last)
    assert max(live.at) == program.memory.lower_bound_bytes == live.at[live.peak_step]
    assert live.after[-1] == 0


def test_a_trace_is_a_file_of_trace_events(tmp_path):
    function = network(profile=True)
    for count in (2, 3):
        function(images(count))
    path = tmp_path / "trace.json"
    function.profile.to_trace(path)
    trace = json.loads(path.read_text(encoding="utf-8"))
    complete = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    assert {event["ph"] for event in trace["traceEvents"]} == {"M", "X", "C"}
    assert all(event["dur"] >= 0 and event["ts"] >= 0 and {"name", "pid", "tid", "args"} <= set(event) for event in complete)
    threads = {event["tid"]: event["args"]["name"] for event in trace["traceEvents"] if event["name"] == "thread_name"}
    assert sorted(threads.values()) == ["host", "steps"]
    steps = [event for event in complete if threads[event["tid"]] == "steps"]
    assert sum(event["args"].get("problem", "").startswith("fprop") for event in steps) == 2
    assert all("written at" in event["args"] for event in steps)
    calls = [event for event in complete if event["name"].startswith("call ")]
    programs = [event for event in complete if event["name"] == "program"]
    for call, program in zip(calls, programs, strict=True):
        assert call["ts"] <= program["ts"]
        assert program["ts"] + program["dur"] <= call["ts"] + call["dur"] + 1
        inside = [event for event in steps if call["ts"] <= event["ts"] < call["ts"] + call["dur"]]
        assert sum(event["dur"] for event in inside) <= program["dur"] + 1


def test_a_trace_keeps_the_last_calls_only():
    profile = Profile("many")
    function = network()
    program = function.prepare((1, 2, 8, 8))
    for _ in range(MAX_TRACED + 5):
        profile.note(program, 1e-6, np.zeros(len(program.steps)))
    assert len(profile.calls) == MAX_TRACED
    assert profile.entries[0].calls == MAX_TRACED + 5
    profile.clear()
    assert not profile.entries
    assert profile.seconds()["calls"] == 0


def test_the_setting_profiles_functions_compiled_without_the_keyword():
    with sc.config.change(profile=True):
        profiled, plain = network(), network(profile=False)
    for function in (profiled, plain, network()):
        function(images(1))
    assert profiled.profile.as_dict()["calls"] == 1
    assert not plain.profile.entries
    assert not network().profiling


def test_a_function_that_is_not_profiled_takes_the_same_path_and_notes_nothing(monkeypatch):
    function = network()
    function(images(2))
    runs, real = [], CompiledProgram.run

    def run(self, seconds=None, *rest, **more):
        runs.append(seconds)
        return real(self, seconds, *rest, **more)

    monkeypatch.setattr(CompiledProgram, "run", run)
    monkeypatch.setattr(Profile, "note", lambda *_: pytest.fail("noted"))
    monkeypatch.setattr(Profile, "note_call", lambda *_: pytest.fail("noted"))
    monkeypatch.setattr(type(function), "_call_profiled", lambda *_: pytest.fail("profiled"))
    function(images(2))
    assert runs
    assert all(seconds is None for seconds in runs)


def test_waiting_for_a_device_is_told_apart():
    function = network(profile=True, device="emulator")
    function(images(1))
    seconds = function.profile.seconds()
    assert 0 <= seconds["waiting"] <= seconds["steps"]
    assert all(row.roofline is None for row in function.profile.rows())


def test_gradients_behind_pooling_are_convolutions_too():
    images = T.tensor4("images", "float32", shape=(4, 8, 12, 12))
    filters = sc.shared(np.ones((8, 8, 3, 3), "float32"), "filters", shape=(8, 8, 3, 3))
    cost = nnet.max_pool_2d(nnet.conv2d(images, filters), (2, 2)).sum()
    function = sc.compile([images], sc.grad(cost, [filters, images]), profile=True)
    function(np.ones((4, 8, 12, 12), "float32"))
    rows = {row.operation: row for row in function.profile.rows()}
    for kind in ("fprop", "wgrad", "dgrad"):
        assert rows[f"Conv {kind}"].problem.startswith(f"{kind} n4 c8 h12 w12 k8 r3 s3")
    problems = [step["problem"].split()[0] for step in function.explain(format="dict")["steps"] if step["problem"]]
    assert sorted(problems) == ["dgrad", "fprop", "wgrad"]
