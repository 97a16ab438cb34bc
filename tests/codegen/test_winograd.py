"""Winograd convolution: the exact matrices, the kernels against loops in float64, the bound of their errors, refusals."""
from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from conv_oracle import WINOGRAD_SIZES, Array, check_winograd, expected, op_and_inputs, operands, winograd_problem
from kernel_runner import make_problem, run_kernel

from symconv.codegen import conv_winograd
from symconv.codegen.conv_direct import ConvDirect
from symconv.codegen.conv_winograd import CONV_WINOGRAD, Blocks, ConvWinograd
from symconv.codegen.implementation import Implementation
from symconv.codegen.winograd_transforms import POINTS, Matrix, cook_toom, straight_line
from symconv.config import config
from symconv.errors import InternalError
from symconv.ops.conv_problem import ConvProblem
from symconv.ops.epilogue import Epilogue
from symconv.ops.scalar import Instruction, ScalarProgram
from symconv.target import Target

SIX = ("0", "1", "-1", "2", "-2", "1/2", "-1/2")
PROBLEMS = [*WINOGRAD_SIZES, "n2 c40 h7 w7 k30 p1", "n3 c16 h14 w14 k64 p1", "n1 c8 h6 w70 k11 p1:2x0:2 flip",
            "n1 c150 h9 w18 k10 p1"]
ERROR = {4: 3e-6, 2: 8e-7}  # of the largest sum of magnitudes


def check(implementation: ConvWinograd, conv: ConvProblem, target: Target) -> None:
    check_winograd(implementation, conv, target, ERROR[implementation.results])


@pytest.mark.parametrize(("results", "points"), [(2, POINTS[2]), (4, POINTS[4]), (6, SIX)])
def test_matrices_make_correlations_exactly(results: int, points: tuple[str, ...]) -> None:
    transforms = cook_toom(results, 3, points)
    rng = np.random.default_rng(0)
    taps = [Fraction(int(each)) for each in rng.integers(-9, 10, 3)]
    data = [Fraction(int(each)) for each in rng.integers(-9, 10, results + 2)]
    products = [a * b for a, b in zip(times(transforms.taps, taps), times(transforms.data, data), strict=True)]
    assert times(transforms.result, products) == [sum(taps[r] * data[i + r] for r in range(3)) for i in range(results)]


def test_matrices_of_two_results_are_the_known_ones() -> None:
    """Lavin and Gray (2016), section 4.1, but for the order of the points and the signs of rows."""
    transforms = cook_toom(2, 3, ("0", "1", "-1"))
    half = Fraction(1, 2)
    assert transforms.taps[1:3] == ((half, half, half), (half, -half, half))
    assert [abs(each) for each in transforms.taps[0]] == [1, 0, 0]
    assert [[int(each) for each in row] for row in transforms.result] == [[1, 1, 1, 0], [0, 1, -1, 1]]


def test_points_must_be_different_and_enough() -> None:
    for points in (("0", "1"), ("0", "1", "1")):
        with pytest.raises(InternalError, match="different points"):
            cook_toom(2, 3, points)


@pytest.mark.parametrize("results", [2, 4])
@pytest.mark.parametrize("name", ["result", "taps", "data"])
def test_straight_line_code_is_the_product(results: int, name: str) -> None:
    matrix: Matrix = getattr(cook_toom(results, 3, POINTS[results]), name)
    values = [Fraction(int(each)) for each in np.random.default_rng(1).integers(-9, 10, len(matrix[0]))]
    names: dict[str, Any] = {f"x{column}": float(value) for column, value in enumerate(values)}
    for line in straight_line(matrix, "x{}", "y{}"):
        for statement in line.removeprefix("const vec ").removesuffix(";").split(", "):
            exec(re.sub(r"([0-9])f\b", r"\1", statement), {}, names)
    np.testing.assert_allclose([names[f"y{row}"] for row in range(len(matrix))], [float(each) for each in times(matrix, values)],
                               rtol=1e-14, atol=1e-13)


def times(matrix: Matrix, vector: list[Fraction]) -> list[Fraction]:
    return [sum((a * b for a, b in zip(row, vector, strict=True)), Fraction(0)) for row in matrix]


@pytest.mark.parametrize("sizes", PROBLEMS)
@pytest.mark.parametrize("kind", ["fprop", "dgrad"])
@pytest.mark.parametrize("implementation", CONV_WINOGRAD, ids=lambda each: each.name)
def test_against_loops(implementation: ConvWinograd, kind: str, sizes: str) -> None:
    conv = winograd_problem(kind, sizes)
    op, inputs = op_and_inputs(conv, *operands(conv))
    if implementation.fused and "tiles at most" in (implementation.refuse(make_problem(op, *inputs), Target()) or ""):
        pytest.skip("it refuses so many tiles")
    for threads in (1, 2):
        check(implementation, winograd_problem(kind, sizes), Target(threads=threads))


@pytest.mark.parametrize("channels", range(1, 18))
def test_few_channels(channels: int) -> None:
    for sizes in (f"n1 c{channels} h6 w9 k8 p1", f"n1 c8 h5 w5 k{channels} p1"):
        for kind in ("fprop", "dgrad"):
            check(CONV_WINOGRAD[1], winograd_problem(kind, sizes), Target(threads=2))


@pytest.mark.parametrize("vector_bytes", [16, 64])
@pytest.mark.parametrize("implementation", CONV_WINOGRAD, ids=lambda each: each.name)
def test_narrow_and_wide_vectors(implementation: ConvWinograd, vector_bytes: int) -> None:
    for kind in ("fprop", "dgrad"):
        check(implementation, winograd_problem(kind, "n1 c10 h9 w21 k34 p1"), Target(vector_bytes=vector_bytes, threads=2))


@pytest.mark.parametrize("blocks", [(1, 5, 0), (2, 128, 0), (1, 96, 96), (2, 7, 35), (3, 12, 24), (99, 1, 128)])
def test_every_way_to_cut_the_work_gives_the_same_bits(monkeypatch: pytest.MonkeyPatch, blocks: tuple[int, int, int]) -> None:
    """Panels of rows and tiles of a block, and tiles whose data are made first."""
    conv = winograd_problem("fprop", "n2 c70 h21 w30 k40 p1")
    op, inputs = op_and_inputs(conv, *operands(conv))
    for implementation in CONV_WINOGRAD[:2]:
        (usual,) = run_kernel(implementation, op, *inputs, threads=1)
        with monkeypatch.context() as patched:
            patched.setattr(conv_winograd, "choose_blocks", lambda _, panels, *__: Blocks(min(blocks[0], panels), *blocks[1:]))
            (found,) = run_kernel(implementation, op, *inputs, threads=2)
        np.testing.assert_array_equal(found, usual)


@pytest.mark.parametrize(("tiles", "panels", "channels", "expected"), [
    (16, 32, 512, 4),    # 7x7 pixels in tiles of 2x2, batch 1: read by 8 blocks instead of 16
    (16, 16, 256, 2),    # 14x14 pixels, batch 1: more would leave too few tasks
    (128, 16, 256, 4),   # batch 8
    (196, 16, 64, 2)])   # data of a task's own stay in the second cache
def test_shared_data_are_read_by_few_blocks_of_panels(tiles: int, panels: int, channels: int, expected: int) -> None:
    blocks = conv_winograd.choose_blocks(tiles, panels, 36 * 4 * channels, threads=2)
    assert blocks.panels == expected
    assert -(-panels // blocks.panels) * -(-tiles // blocks.tiles) >= 8


@pytest.mark.parametrize("sizes", ["n1 c16 h12 w18 k9 l2x3 p2x3", "n1 c24 h10 w12 k20 l2 p4:2x2:0 flip", "n0 c8 h8 w8 k8 l2 p2",
                                   "n1 c16 h12 w12 k16 l2 p2 g2", "n1 c8 h8 w30 k9 l1x5 p1x5"])
@pytest.mark.parametrize("implementation", CONV_WINOGRAD, ids=lambda each: each.name)
def test_dilations_by_phases(implementation: ConvWinograd, sizes: str) -> None:
    for kind in ("fprop", "dgrad"):
        check(implementation, winograd_problem(kind, sizes), Target(threads=2))


@pytest.mark.parametrize(("text", "reason"), [
    ("fprop n1 c8 h9 w8 k8 r3 s3 l2 p2 f32", "does not divide"), ("fprop n1 c8 h8 w8 k8 r3 s3 l2 p1 f32", "does not divide"),
    ("fprop n1 c8 h8 w8 k8 r3 s3 l2 p6 f32", "nothing but zeros")])
def test_phases_must_be_of_one_size(text: str, reason: str) -> None:
    conv = ConvProblem.parse(text)
    op, inputs = op_and_inputs(conv, *operands(conv))
    assert reason in (ConvWinograd(2, 1).refuse(make_problem(op, *inputs), Target()) or "")


@pytest.mark.parametrize("kind", ["fprop", "dgrad"])
def test_filters_transformed_inside_give_the_same_bits(kind: str) -> None:
    conv = winograd_problem(kind, "n2 c70 h11 w9 k40 p1")
    op, inputs = op_and_inputs(conv, *operands(conv))
    for results, least in ((4, 8), (2, 1)):
        (usual,) = run_kernel(ConvWinograd(results, least), op, *inputs, threads=2)
        (found,) = run_kernel(ConvWinograd(results, least, fused=True), op, *inputs, threads=2)
        np.testing.assert_array_equal(found, usual)


def test_filters_are_not_transformed_again_and_again() -> None:
    for sizes, taken in (("n4 c8 h16 w16 k8 p1", True), ("n4 c8 h16 w17 k8 p1", False)):
        conv = winograd_problem("fprop", sizes)
        op, inputs = op_and_inputs(conv, *operands(conv))
        reason = ConvWinograd(4, 8, fused=True).refuse(make_problem(op, *inputs), Target())
        assert (reason is None) is taken
        assert taken or "80" in (reason or "")


def errors(implementation: Implementation, conv: ConvProblem) -> Array:
    x, w, y = operands(conv, seed=3)
    op, inputs = op_and_inputs(conv, x, w, y)
    (found,) = run_kernel(implementation, op, *inputs, threads=2)
    return np.abs(found - expected(conv, x, w, y)[0])


@pytest.mark.parametrize("channels", [1, 2, 4, 7, 8, 16, 33, 64, 128, 200, 512])
def test_errors_stay_within_the_stated_bound(channels: int) -> None:
    """Root of the mean square and largest error: at most 4 times those of the direct kernel."""
    for kind, sizes in (("fprop", f"n1 c{channels} h24 w24 k8 p1"), ("dgrad", f"n1 c8 h24 w24 k{channels} p1")):
        conv = winograd_problem(kind, sizes)
        direct = errors(ConvDirect(), conv)
        op, inputs = op_and_inputs(conv, *operands(conv))
        taking = [each for each in CONV_WINOGRAD if each.refuse(make_problem(op, *inputs), Target()) is None]
        assert taking
        for implementation in taking:
            found = errors(implementation, conv)
            assert np.sqrt(np.mean(found ** 2)) <= 4 * np.sqrt(np.mean(direct ** 2)), implementation.name
            assert found.max() <= 4 * direct.max(), implementation.name


def test_a_bias_reaches_all_phases_of_a_dilation() -> None:
    f32 = "float32"
    program = ScalarProgram((f32, f32), (Instruction("add", (0, 1), f32),), (2,))
    conv = winograd_problem("fprop", "n2 c16 h12 w8 k10 l2 p2")
    x, w, y = operands(conv)
    wanted, magnitude = expected(conv, x, w, y)
    bias = np.arange(10, dtype=f32)
    op, inputs = op_and_inputs(conv, x, w, y, Epilogue(program, ("channel",)))
    (found,) = run_kernel(ConvWinograd(4, 8), op, *inputs, bias, threads=2)
    np.testing.assert_allclose(found, wanted + bias.reshape(-1, 1, 1), atol=3e-6 * magnitude.max(), rtol=1e-6)
    op, inputs = op_and_inputs(conv, x, w, y, Epilogue(program, ("full",)))
    problem = make_problem(op, *inputs, np.zeros(wanted.shape, f32))
    assert "taken apart" in (ConvWinograd(4, 8).refuse(problem, Target()) or "")


@pytest.mark.parametrize("kind", ["fprop", "dgrad"])
def test_epilogues(kind: str) -> None:
    f32 = "float32"
    body = (Instruction("add", (0, 1), f32), Instruction("relu", (2,), f32))
    bias_relu = Epilogue(ScalarProgram((f32, f32), body, (3,)), ("channel",))
    longer = (Instruction("mul", (0, 1), f32), Instruction("add", (3, 2), f32), Instruction("tanh", (4,), f32))
    scale_residual_tanh = Epilogue(ScalarProgram((f32, f32, f32), longer, (5,)), ("channel", "full"))
    conv = winograd_problem(kind, "n1 c16 h9 w13 k16 p1 g2")
    x, w, y = operands(conv)
    wanted, magnitude = expected(conv, x, w, y)
    rng = np.random.default_rng(5)
    channel, full = rng.standard_normal((wanted.shape[1],)).astype(f32), rng.standard_normal(wanted.shape).astype(f32)
    along = channel.astype(np.float64).reshape(-1, 1, 1)
    for epilogue, extra, finished in ((bias_relu, [channel], np.maximum(wanted + along, 0)),
                                      (scale_residual_tanh, [channel, full], np.tanh(wanted * along + full))):
        op, inputs = op_and_inputs(conv, x, w, y, epilogue)
        for implementation in CONV_WINOGRAD:
            (found,) = run_kernel(implementation, op, *inputs, *extra, threads=2)
            allowed = 3e-6 * (magnitude.max() * (1 + abs(along)) + 1)
            assert (np.abs(found - finished) <= allowed).all(), implementation.name


@pytest.mark.parametrize(("text", "reason"), [
    ("wgrad n1 c8 h8 w8 k8 r3 s3 p1 f32", "filter gradients"),
    ("fprop n1 c8 h8 w8 k8 r3 s3 p1 f64", "float64"),
    ("fprop n1 c8 h8 w8 k8 r3 s3 p1 f32@f64", "not in float64"),
    ("fprop n1 c8 h8 w8 k8 r5 s5 p2 f32", "3x3"),
    ("fprop n1 c8 h8 w8 k8 r3 s1 f32", "3x3"),
    ("fprop n1 c8 w8 k8 s3 f32", "3x3"),
    ("fprop n1 c8 d4 h8 w8 k8 t3 r3 s3 f32", "3x3"),
    ("fprop n1 c8 h8 w8 k8 r3 s3 u2 p1 f32", "stride"),
    ("fprop n1 c8 h8 w8 k8 r3 s3 l2 p1 f32", "dilation"),
    ("dgrad n1 c8 h8 w8 k8 r3 s3 p1x0:3 f32", "padding"),
    ("fprop n1 c8 h8 w8 k16 r3 s3 p1 g8 f32", "group"),
])
def test_refusals_say_why(text: str, reason: str) -> None:
    conv = ConvProblem.parse(text)
    op, inputs = op_and_inputs(conv, *operands(conv))
    for implementation in CONV_WINOGRAD:
        assert reason in (implementation.refuse(make_problem(op, *inputs), Target()) or ""), implementation.name


def test_four_results_are_refused_for_few_channels() -> None:
    for kind, sizes in (("fprop", "n1 c7 h8 w8 k64 p1"), ("dgrad", "n1 c64 h8 w8 k7 p1")):
        conv = winograd_problem(kind, sizes)
        op, inputs = op_and_inputs(conv, *operands(conv))
        reasons = [each.refuse(make_problem(op, *inputs), Target()) for each in CONV_WINOGRAD]
        assert "over 7 channels" in (reasons[0] or "")
        assert reasons[1] is None


def test_the_setting_turns_it_off() -> None:
    conv = winograd_problem("fprop", "n1 c64 h28 w28 k64 p1")
    op, inputs = op_and_inputs(conv, *operands(conv))
    with config.change(conv__winograd="off"):
        assert all("conv.winograd" in (each.refuse(make_problem(op, *inputs), Target()) or "") for each in CONV_WINOGRAD)
    assert all(each.refuse(make_problem(op, *inputs), Target()) is None for each in CONV_WINOGRAD if not each.fused)


def test_chosen_where_it_is_faster() -> None:
    """Large 3x3 layers run in Winograd's form; one with few channels and one with few pixels and many channels do not run 4x4."""
    for text, wanted in (("fprop n8 c64 h56 w56 k64 r3 s3 p1 f32", True), ("dgrad n8 c256 h14 w14 k256 r3 s3 p1 f32", True),
                         ("fprop n1 c1 h28 w28 k1 r3 s3 p1 f32", False)):
        conv = ConvProblem.parse(text)
        op, inputs = op_and_inputs(conv, *operands(conv))
        problem, target = make_problem(op, *inputs), Target(threads=2)
        others = ConvDirect().estimate(problem, target)
        best = min(each.estimate(problem, target) for each in CONV_WINOGRAD if each.refuse(problem, target) is None)
        assert (best < others) is wanted, text


def test_one_source_serves_every_size() -> None:
    sources = set()
    for sizes in ("n1 c8 h20 w20 k8 p1", "n3 c64 h7 w9 k32 p0", "n2 c16 h56 w56 k16 p2 g2 flip"):
        conv = winograd_problem("fprop", sizes)
        op, inputs = op_and_inputs(conv, *operands(conv))
        sources.add(ConvWinograd(4, 8).build(make_problem(op, *inputs), Target()).source)
    assert len(sources) == 1
