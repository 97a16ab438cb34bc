"""Function.explain: what is chosen and why, what it says before a program exists, one step, plain data."""
from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from printing.graphs import blocked, classifier, classify, counter

import symconv as sc
import symconv.tensor as T
from symconv.codegen.implementation import Implementation
from symconv.errors import ArgumentError
from symconv.ops.convolution import Conv
from symconv.runtime import select
from symconv.tensor import nnet


class Picky(Implementation):
    name = "picky"

    def refuse(self, problem, target):
        return "it wants\n17 channels"


class Slow(Implementation):
    name = "slow"

    def estimate(self, problem, target):
        return 7.5e-3


@pytest.fixture
def prepared():
    function = classify()
    function.prepare((2, 1, 6, 6))
    return function


def test_before_a_program_it_says_how_to_get_one():
    text = classify().explain()
    assert "no program yet" in text
    assert "prepare(shapes)" in text
    assert classify().explain(format="dict")["steps"] == []


def test_every_candidate_has_an_estimate_or_a_reason(monkeypatch):
    real = select.implementations
    monkeypatch.setattr(select, "implementations",
                        lambda op, device: (*real(op, device), Picky(), Slow()) if op is Conv else real(op, device))
    function = classify()
    function.prepare((2, 1, 6, 6))
    text = function.explain()
    assert "not picky: it wants\\n17 channels" in text
    # 2 * 2*3*4*4 results * 9 taps = 1728 operations in 7.5 ms
    assert "not slow: slower (expected 7.5 ms, 0.0 GFLOP/s, 0% of the peak)" in text
    assert "cuDNN: no, the device is cpu" in text
    rows = next(step for step in function.explain(format="dict")["steps"] if step["problem"])["candidates"]
    slow = next(row for row in rows if row["name"] == "slow")
    assert slow["seconds"] == 7.5e-3
    assert slow["gflops"] == pytest.approx(1728 / 7.5e-3 / 1e9)
    assert [row["chosen"] for row in rows].count(True) == 1


def test_problem_string_and_fused_parts(prepared):
    text = prepared.explain()
    assert "fprop n2 c1 h6 w6 k3 r3 s3 flip f32 +bias+relu" in text
    assert "fused into it: relu(conv + i2)" in text
    assert "graphs.py:" in text


def test_cudnn_switched_off_is_said(prepared):
    with sc.config.change(dnn__enabled=False):
        assert "cuDNN: no, config.dnn.enabled is False" in prepared.explain()


def test_declined_rewrites_are_listed():
    images, _, _, sums = classifier()
    maps = sums.apply.inputs[0].apply.inputs[0]
    function = sc.compile([images], [sums, maps], name="both")
    assert "not fuse_into_epilogue at" in function.explain()


def test_memory_agrees_with_the_plan():
    function = counter()
    memory = function.explain(format="dict")["memory"]
    program = function.programs[-1]
    assert memory["arena_bytes"] == program.memory.arena_bytes
    assert memory["updates_in_place"] == ["last"]
    assert memory["updates_swapped"] == ["total"]
    assert memory["in_place"] == sum(len(step.in_place) for step in program.steps)


def test_a_reference_step_says_why():
    x = T.matrix("x", "float64", shape=(2, 2))
    with sc.config.change(conv__implementation=""):
        text = sc.compile([x], T.exp(x), mode="reference").explain()
    assert "NumPy reference: the mode asks for the NumPy references" in text


@pytest.mark.parametrize("wanted", ["Conv", 0, "conv_gemm"])
def test_one_step_by_op_number_or_implementation(wanted):
    with sc.config.change(conv__implementation="conv_gemm"):
        function = classify()
        function.prepare((2, 1, 6, 6))
    text = function.explain(wanted)
    assert text.startswith("step 0: fprop")
    assert "step 1" not in text
    assert [step["step"] for step in function.explain(wanted, format="dict")["steps"]] == [0]


def test_one_step_by_what_it_updates_and_by_variable(prepared):
    assert prepared.explain("filters").startswith("step 2: mul")
    graph = prepared.programs[-1].graph
    assert prepared.explain(graph.outputs[0]).startswith("step 1: sum")
    assert prepared.explain(graph.outputs[0].apply).startswith("step 1: sum")


def test_a_users_variable_is_found_by_its_name_or_its_line():
    x = T.vector("x", "float64", shape=(3,))
    root = T.sqrt(x)
    root.name = "root"
    function = sc.compile([x], [root, x[::-1] * 3])
    assert "sqrt" in function.explain(root)
    assert "sqrt" in function.explain("root")
    outputs = function.graph.outputs
    assert "mul" in function.explain(outputs[1])


@pytest.mark.parametrize("wanted", ["nothing", 99, -1, 1.5, True, object(), T.vector("elsewhere")])
def test_unknown_steps_are_an_error_that_lists_what_there_is(prepared, wanted):
    with pytest.raises(ArgumentError, match="'filters'"):
        prepared.explain(wanted)


def test_the_text_is_a_str_that_a_session_shows_as_it_is(prepared):
    text = prepared.explain()
    assert isinstance(text, str)
    assert repr(text) == str(text)
    assert "\n" in repr(text)


def test_plain_data_is_json(prepared):
    assert json.loads(json.dumps(prepared.explain(format="dict")))["steps"][0]["problem"].startswith("fprop")


def test_the_last_program_used_is_explained(prepared):
    prepared.prepare((5, 1, 8, 8))
    assert "n5 c1 h8 w8" in prepared.explain()
    assert "one of 2 programs" in prepared.explain()
    prepared(np.ones((2, 1, 6, 6), "float32"))
    assert "n2 c1 h6 w6" in prepared.explain()


def test_frozen_reports_can_be_compared():
    from symconv.runtime.report import make_report

    report = make_report(counter())
    assert replace(report, name="other") != report
    assert report.steps == make_report(counter()).steps or len(report.steps) == 4


def test_transformed_weights_are_told_from_copies():
    x = T.tensor4("x", "float32")
    weights = sc.shared(np.ones((16, 16, 3, 3), "float32"), "weights")
    function = sc.compile([x], nnet.conv2d(x, weights))
    with sc.config.change(conv__implementation="conv_winograd_2x2"):
        function.prepare((2, 16, 20, 20))
    first = function.explain(format="dict")["steps"][0]
    assert first["op"] == "an input in the form that its reader wants"
    assert first["kernel"].endswith("_weights")


def test_formats_and_wrong_ones(prepared):
    assert prepared.explain(format="dict")["steps"][0]["problem"] in prepared.explain(format="text")
    with pytest.raises(ArgumentError, match="'text', 'dict', 'html'"):
        prepared.explain(format="json")


def test_an_input_means_the_steps_that_read_it(prepared):
    assert [step["step"] for step in prepared.explain("any_images", format="dict")["steps"]] == [0]
    assert prepared.explain("bias").startswith("step 0: fprop")


def test_what_was_not_fused_is_told_at_the_convolution():
    images, _, _, sums = classifier()
    maps = sums.apply.inputs[0].apply.inputs[0]
    (step, *_) = sc.compile([images], [sums, maps], name="both").explain("Conv", format="dict")["steps"]
    assert step["fused"] == ["add"]
    assert any(reason.startswith("fuse_into_epilogue at relu") and "is an output too" in reason for reason in step["not_fused"])


def test_precision_is_told():
    x = T.tensor4("x", "float32", shape=(2, 16, 20, 20))
    weights = sc.shared(np.ones((16, 16, 3, 3), "float32"), "weights", shape=(16, 16, 3, 3))
    with sc.config.change(conv__implementation="conv_winograd_4x4"):
        notes = sc.compile([x], nnet.conv2d(x, weights)).explain("Conv", format="dict")["steps"][0]["notes"]
    assert notes[0] == "sums run in float32"
    assert "4 times" in notes[1]
    half = T.tensor("half", "float16", shape=(4, 4))
    assert "sums run in float32" in sc.compile([half], T.dot(half, half)).explain("MatMul")
    count = T.tensor("count", "int32", shape=(4,))
    assert "sums run in int64" in sc.compile([count], count.sum()).explain("sum")


def test_determinism_is_told():
    function = classify()
    function.prepare((2, 1, 6, 6))
    assert any("measured ceilings" in note for note in function.explain(format="dict")["notes"])
    with sc.config.change(deterministic=True):
        assert "no kernel is chosen by a measurement" in function.explain()
    with sc.config.change(selection="measure"):
        assert "by measured times" in function.explain()


def test_layouts_conversions_and_what_they_cost():
    with sc.config.change(layout="always"):
        function = blocked()
    layout = function.explain(format="dict")["layout"]
    first = layout["conversions"][0]
    assert (first["what"], first["layout_before"], first["nbytes"]) == ("images", "nchw", 2 * 8 * 36 * 4)
    assert first["layout_after"] in ("nchw4c", "nchw8c", "nchw16c")
    steps = function.programs[-1].steps
    for each in layout["conversions"]:
        assert each["step"] is None or steps[each["step"]].node is None
        assert all(steps[reader].node is not None or steps[reader].writes[0].storage.kind == "output" for reader in each["readers"])
    assert isinstance(layout["saved_seconds"], float)
    assert classify().explain(format="dict")["layout"]["conversions"] == []


def test_memory_held_beside_the_arena():
    memory = counter().explain(format="dict")["memory"]
    assert memory["held_bytes"] == {"input": 24, "shared": 48, "constant": 8, "output": 48, "update": 24}
    assert memory["peak_bytes"] == memory["arena_bytes"] + 152


def test_copies_on_the_cpu_and_on_a_device():
    x = T.vector("x", "float64", shape=(3,))
    state = sc.shared(np.ones(3), "state", shape=(3,))
    found = sc.compile([x], [x, sc.Out(x * state, on_device=True)], device="emulator").explain(format="dict")["transfers"]
    by_name = {each["what"]: each for each in found}
    assert by_name["x"]["nbytes"] == 24
    assert "host to device on every call" in by_name["x"]["how"]
    assert "stays there" in by_name["state"]["how"]
    assert "device to host" in by_name["output 0"]["how"]
    assert by_name["output 1"]["how"] == "stays on the device"
    (copy,) = sc.compile([x], [x, x * 2]).explain(format="dict")["transfers"]
    assert (copy["what"], copy["nbytes"]) == ("x", 24)
    assert "to output 0, on every call" in copy["how"]
    assert "copy to output 0" in sc.compile([x], [x, x * 2]).explain()


def test_convolutions_on_blocks_tell_the_line_where_they_were_written():
    with sc.config.change(layout="always"):
        sources = [step["sources"] for step in blocked().explain("Conv", format="dict")["steps"]]
    first, second = (source[0] for source in sources)
    assert "hidden = T.nnet.relu" in first
    assert "T.tanh(" in second


def test_channels_last_are_told():
    images = T.tensor4("images", shape=(1, 16, 6, 6))
    filters = [sc.shared(np.ones((16, 16, 3, 3), "float32"), f"filters{number}", shape=(16, 16, 3, 3)) for number in range(2)]
    hidden = nnet.relu(nnet.conv2d(images, filters[0]))
    with sc.config.change(layout="always", precision="tf32"):
        function = sc.compile([images], nnet.conv2d(hidden, filters[1]), device="emulator")
        layout = function.explain(format="dict")["layout"]
        assert sum("[1,4,4,16] nhwc" in line for line in sc.debugprint(function, file="str").split("\n")) == 1
    assert [(each["what"], each["layout_before"], each["layout_after"]) for each in layout["conversions"]][:1] == [
        ("images", "nchw", "nhwc")]
    assert layout["conversions"][-1]["layout_after"] == "nchw"
    assert len(layout["conversions"]) == 2
