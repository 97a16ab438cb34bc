"""Convolution parameters without graphs: border modes, sizes, problem strings, and every error."""
from __future__ import annotations

import itertools
import math
import re
from pathlib import Path
from typing import Any

import pytest
from plain_convolution import Setting, plain_outputs, plain_padding

from symconv.errors import ArgumentError, GraphTypeError, InternalError, ShapeError
from symconv.ops.border_modes import parse_border_mode
from symconv.ops.conv_problem import ConvProblem
from symconv.ops.epilogue import Epilogue
from symconv.ops.scalar import Instruction, ScalarProgram
from symconv.ops.spec import ConvSpec, Kind, check_output, filters_shape, image_shape, make_spec, output_shape

PROBLEMS = Path(__file__).parents[1] / "problems"
MODES = ["valid", "full", "half", "same", "same_upper", "same_lower", "causal", 0, 1, 2, ((0, 1),), ((3, 1),)]


def problem_lines(name: str) -> list[str]:
    return [line for line in (PROBLEMS / name).read_text().splitlines() if not line.startswith("#")]


@pytest.mark.parametrize("mode", MODES)
def test_sizes_and_pads_of_every_mode(mode: Any) -> None:
    for kernel, dilation, stride, size in itertools.product(range(1, 7), (1, 2, 3), (1, 2, 3), range(1, 18)):
        setting = Setting(1, 1, (size,), 1, (kernel,), (stride,), (dilation,), mode, 1, False)
        spec = make_spec(1, mode, stride, dilation)
        places = plain_outputs(setting)[0]
        if places == 0:
            with pytest.raises(ShapeError, match="larger than the padded image"):
                output_shape((1, 1, size), (1, 1, kernel), spec)
            continue
        assert output_shape((1, 1, size), (1, 1, kernel), spec) == (1, 1, places)
        assert spec.resolved((size,), (kernel,)).padding == tuple(plain_padding(setting))
        if mode in ("same", "same_lower"):
            assert places == math.ceil(size / stride)


def test_theanos_own_examples_of_shapes() -> None:
    # theano/tensor/nnet/tests/test_abstract_conv.py, TestGetConvOutShape
    for mode, wanted in (("valid", (3, 4, 4, 2)), ("half", (3, 4, 12, 5)), ("full", (3, 4, 20, 7)), ((1, 2), (3, 4, 6, 4))):
        spec = make_spec(2, mode, (1, 2), (2, 1))
        assert output_shape((3, 2, 12, 9), (4, 2, 5, 6), spec) == wanted


def test_sizes_that_are_not_known() -> None:
    assert output_shape((None, 2, None, 9), (4, None, 3, 3), make_spec(2)) == (None, 4, None, 7)
    assert output_shape((1, 2, 9), (4, 2, None), make_spec(1, "same", 2)) == (1, 4, 5)
    assert output_shape((1, 2, 9), (4, 2, None), make_spec(1, "half")) == (1, 4, None)
    assert output_shape((1, 2, None), (4, 2, 3), make_spec(1, "same", 1)) == (1, 4, None)
    spec = make_spec(2, "same", (1, 2)).resolved((None, None), (3, 3))
    assert spec.padding == ((1, 1), "same")
    assert not spec.is_resolved
    assert make_spec(2, "half").resolved((None, None), (4, 5)).padding == ((2, 2), (2, 2))


def test_inverse_shapes() -> None:
    spec = make_spec(2, 1, (1, 2))
    assert image_shape((5, 4, 8, 4), (4, 3, 3, 3), spec) == (5, 3, 8, None)
    assert filters_shape((5, 3, 8, 7), (5, 4, 8, 4), spec) == (4, 3, 3, None)
    assert image_shape((5, 4, 8), (4, 3, None), make_spec(1, "same", groups=2)) == (5, 6, 8)
    assert image_shape((5, 4, 8), (4, 3, 3), make_spec(1, "full")) == (5, 3, 6)
    check_output((5, 3, 8, 7), (4, 3, 3, 3), (5, 4, 8, 4), spec)
    with pytest.raises(ShapeError, match=re.escape("give a response (5, 4, 8, 4), but the output gradient has the shape")):
        check_output((5, 3, 8, 7), (4, 3, 3, 3), (5, 4, 8, 3), spec)


def test_kinds_say_what_they_read_and_produce() -> None:
    assert [(kind.reads, kind.produces) for kind in Kind] == [(("x", "w"), "y"), (("y", "w"), "x"), (("x", "y"), "w")]
    assert [Kind.producing(kind.produces) for kind in Kind] == list(Kind)


@pytest.mark.parametrize("mode", [[1, 2], (1, 2), [(1, 1), [2, 2]]])
def test_lists_and_tuples_are_alike(mode: Any) -> None:
    assert parse_border_mode(mode, 2) == ((1, 1), (2, 2))


WRONG = [
    ({"border_mode": -1}, ArgumentError, "border_mode must not be negative\n  found: -1"),
    ({"border_mode": (1, (0, -2))}, ArgumentError, "border_mode must not be negative\n  found: (0, -2)"),
    ({"border_mode": (1, 2, 3)}, ArgumentError, "border_mode must have one entry for each of the 2 spatial axes"),
    ({"border_mode": "sames"}, ArgumentError, "border_mode does not take this value\n  found: 'sames'"),
    ({"border_mode": (1, "never")}, ArgumentError, "border_mode does not take this value\n  found: 'never'"),
    ({"border_mode": (1, (1, 2, 3))}, ArgumentError, "border_mode does not take this value\n  found: (1, 2, 3)"),
    ({"border_mode": (1, 0.5)}, ArgumentError, "border_mode does not take this value\n  found: 0.5"),
    ({"border_mode": True}, GraphTypeError, "border_mode does not take this value\n  found: True"),
    ({"border_mode": None}, GraphTypeError, "border_mode does not take this value\n  found: None"),
    ({"stride": 0}, ArgumentError, "stride must be 1 or more\n  found: 0"),
    ({"stride": (1, -2)}, ArgumentError, "stride must be 1 or more\n  found: (1, -2)"),
    ({"stride": (1, 2, 3)}, ArgumentError, "stride must have 2 elements, one for each spatial axis"),
    ({"stride": 1.5}, GraphTypeError, "stride must be a whole number or 2 of them"),
    ({"dilation": (0, 1)}, ArgumentError, "dilation must be 1 or more\n  found: (0, 1)"),
    ({"dilation": (1,)}, ArgumentError, "dilation must have 2 elements"),
    ({"groups": 0}, ArgumentError, "groups must be 1 or more\n  found: 0"),
    ({"groups": 2.0}, GraphTypeError, "groups must be a whole number"),
    ({"flip": "yes"}, GraphTypeError, "whether the kernel is flipped is True or False"),
    ({"compute_dtype": "float16"}, ArgumentError, "summed in float32 or float64"),
    ({"compute_dtype": "int32"}, ArgumentError, "summed in float32 or float64"),
]


@pytest.mark.parametrize(("arguments", "error", "text"), WRONG)
def test_parameters_that_mean_nothing(arguments: dict[str, Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=re.escape(text)):
        make_spec(2, **arguments)


def test_a_rank_that_is_none() -> None:
    with pytest.raises(ArgumentError, match="1, 2 or 3 spatial axes\n  found: 4"):
        make_spec(4)


MISFITS = [
    ((1, 3, 8, 8), (4, 2, 3, 3), {}, "the filters take 2 channels, the image has 3\n"
     "  found: image (1, 3, 8, 8), filters (4, 2, 3, 3), groups 1"),
    ((1, 3, 8, 8), (4, 3, 3, 3), {"groups": 2}, "the image's 3 channels do not divide into 2 groups"),
    ((None, 4, None, 8), (3, 2, 3, 3), {"groups": 2}, "the 3 filters do not divide into 2 groups\n"
     "  found: image (?, 4, ?, 8), filters (3, 2, 3, 3), groups 2"),
    ((1, 3, 8, 4), (4, 3, 3, 3), {"dilation": (1, 2), "border_mode": (0, (0, 0))},
     "larger than the padded image along spatial axis 1 (axis 3 of the image)\n"
     "  found: kernel 3 with dilation 2 spans 5; image 4 + padding 0 + 0 = 4"),
    ((1, 3, 8, 4), (4, 3, 3, 0), {}, "the kernel has no elements along spatial axis 1"),
]


@pytest.mark.parametrize(("x_shape", "w_shape", "arguments", "text"), MISFITS)
def test_sizes_that_do_not_fit(x_shape: Any, w_shape: Any, arguments: dict[str, Any], text: str) -> None:
    with pytest.raises(ShapeError, match=re.escape(text)):
        output_shape(x_shape, w_shape, make_spec(2, **arguments))


def test_wrong_ranks() -> None:
    with pytest.raises(GraphTypeError, match=re.escape("the image of a 2-D convolution must have 4 axes (batch, channels")):
        output_shape((1, 3, 8), (4, 3, 3, 3), make_spec(2))
    with pytest.raises(GraphTypeError, match="the filters of a 2-D convolution must have 4 axes"):
        output_shape((1, 3, 8, 8), (4, 3, 3), make_spec(2))


def test_a_spec_keeps_its_invariants() -> None:
    with pytest.raises(InternalError, match="lengths"):
        ConvSpec(2, (1, 1), (1,), (0, 0), (0, 0))
    with pytest.raises(InternalError, match="too small"):
        ConvSpec(1, (1,), (1,), (-1,), (0,))
    with pytest.raises(InternalError, match="rule 'same' and the pads 1, 0"):
        ConvSpec(1, (2,), (1,), (1,), (0,), pad_rule=("same",))
    with pytest.raises(InternalError, match="unresolved"):
        ConvProblem(Kind.FPROP, make_spec(1, "same", 2), (1, 1, 8), (1, 1, 3), "float32", "float32")


@pytest.mark.parametrize("line", problem_lines("conv_small.txt"))
def test_problem_strings_round_trip(line: str) -> None:
    problem = ConvProblem.parse(line)
    assert str(problem) == line
    assert ConvProblem.parse(str(problem)) == problem


def test_layers_of_real_networks() -> None:
    lines = problem_lines("conv_networks.txt")
    assert len(lines) > 200
    for line in lines:
        text, facts = (part.strip() for part in line.split("#"))
        macs, result = facts.split()
        problem = ConvProblem.parse(text)
        assert str(problem) == text
        assert problem.result_shape == tuple(map(int, result.split("x")))
        if problem.kind is Kind.FPROP:
            assert problem.flops == 2 * int(macs)
        m, n, k, batch = problem.gemm
        assert problem.kind is not Kind.FPROP or 2 * m * n * k * batch == problem.flops


def test_problem_strings_of_every_setting_round_trip() -> None:
    sizes = ("w9", "s3"), ("h9 w8", "r3 s2"), ("d9 h8 w7", "t3 r2 s1")
    for ndim, (image, kernel) in enumerate(sizes, 1):
        pads, strides = ["", "p2", "p" + "x".join(["1:0", "2", "0:3"][:ndim])], ["", "u2", "u" + "x".join("123"[:ndim])]
        ends = ["f32", "f32@f64", "f16>f32", "bf16", "f64>i32 +bias+relu"]
        for kind, pad, stride, end in itertools.product(("fprop", "dgrad", "wgrad"), pads, strides, ends):
            text = " ".join(f"{kind} n2 c4 {image} k6 {kernel} {stride} {pad} l2 g2 flip {end}".split())
            if ndim == 1:  # for one axis "u1" and "p2x…" are spelled shorter
                text = text.replace(" u1", "")
            text = text.replace("l2", "l1x2" if ndim == 2 else "l2")
            assert str(ConvProblem.parse(text)) == text


def test_numbers_of_a_problem() -> None:
    problem = ConvProblem.parse("fprop n2 c8 h5 w5 k6 r3 s3 g2 f16>f32")
    assert problem.y_shape == (2, 6, 3, 3)
    assert problem.flops == 2 * 2 * 6 * 9 * 4 * 9
    assert problem.bytes == 2 * (2 * 8 * 25 + 6 * 4 * 9) + 4 * 2 * 6 * 9
    assert problem.gemm == (2 * 9, 3, 4 * 9, 2)
    assert problem.accumulator == "float32"
    assert ConvProblem.parse("wgrad n2 c8 h5 w5 k6 r3 s3 g2 f32").gemm == (3, 4 * 9, 2 * 9, 2)
    assert ConvProblem.parse("dgrad n2 c8 h5 w5 k6 r3 s3 g2 f32").gemm == (2 * 25, 4, 3 * 9, 2)


@pytest.mark.parametrize(("text", "found"), [
    ("", "begins with ''"),
    ("forward n1 c1 w3 k1 s1 f32", "begins with 'forward'"),
    ("fprop n1 c1 w3 k1 s1", "it does not say dtype"),
    ("fprop n1 c1 k1 s1 f32", "it does not say w"),
    ("fprop n1", 'it does not say c, k, w, s, dtype\n  do: write for instance "fprop n8'),
    ("fprop n1 c1 w3 k1 r1 s1 f32", "r in a 1-D convolution"),
    ("fprop n1 c1 w3 k1 s1 q7 f32", "the word 'q7'"),
    ("fprop n1 n2 c1 w3 k1 s1 f32", "'n2' after another 'n'"),
    ("fprop n1 c1 h3 w3 k1 r1 s1 p1x1x1 f32", "p1x1x1"),
    ("fprop n1 c1 w3 k1 s1 u1:2 f32", "u1:2"),
    ("fprop n1 c1 w3 k1 s1 u0 f32", "a stride or dilation of 0"),
    ("fprop n1 c3 w3 k2 s1 g2 f32", "3 channels in 2 groups"),
    ("fprop n1 c1 w3 k1 s1 f32>f99", "the dtype 'f32>f99'"),
    ("fprop n1 c1 w3 k1 s5 f32", "larger than the padded image"),
])
def test_texts_that_are_no_problem(text: str, found: str) -> None:
    with pytest.raises((ArgumentError, ShapeError), match=re.escape(found)):
        ConvProblem.parse(text)


def test_the_text_of_an_epilogue() -> None:
    f32 = "float32"
    body = (Instruction("mul", (0, 1), f32), Instruction("add", (4, 2), f32), Instruction("add", (3, 5), f32),
            Instruction("constant", (), f32, 0.5), Instruction("maximum", (6, 7), f32),
            Instruction("cast", (8,), "float16"))
    epilogue = Epilogue(ScalarProgram((f32,) * 4, body, (9,)), ("channel", "channel", "full"))
    assert str(epilogue) == "+scale+bias+residual+maximum+cast:float16"
    assert epilogue.dtype == "float16"
    with pytest.raises(InternalError):
        Epilogue(ScalarProgram((f32,) * 2, (), (0,)), ())
    with pytest.raises(InternalError):
        Epilogue(ScalarProgram((f32,) * 2, (), (0,)), ("pixel",))
