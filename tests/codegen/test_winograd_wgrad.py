"""Filter gradients in Winograd's form: the kernels against loops in float64, the bound of their errors, the same bits always."""
from __future__ import annotations

import numpy as np
import pytest
from conv_oracle import WINOGRAD_SIZES, Array, check_winograd, expected, op_and_inputs, operands, winograd_problem
from kernel_runner import make_problem, run_kernel

from symconv.codegen import conv_winograd_wgrad
from symconv.codegen.conv_wgrad import ConvWgrad
from symconv.codegen.conv_wgrad_direct import ConvWgradDirect
from symconv.codegen.conv_winograd_wgrad import CONV_WINOGRAD_WGRAD, ConvWinogradWgrad
from symconv.codegen.implementation import Implementation
from symconv.config import config
from symconv.ops.conv_problem import ConvProblem
from symconv.ops.epilogue import Epilogue
from symconv.ops.scalar import Instruction, ScalarProgram
from symconv.target import Target

PROBLEMS = [*WINOGRAD_SIZES, "n2 c40 h7 w7 k70 p1", "n3 c70 h14 w14 k33 p1", "n1 c8 h6 w70 k11 p1:4x3:2 flip",
            "n1 c1 h9 w18 k1 p1"]
ALL = (ConvWinogradWgrad(4, 1, 1), ConvWinogradWgrad(2, 1, 1))  # also where errors would be larger than stated
EACH = pytest.mark.parametrize("implementation", ALL, ids=lambda each: each.name)


def problem_of(sizes: str) -> ConvProblem:
    return winograd_problem("wgrad", sizes)


def check(implementation: Implementation, conv: ConvProblem, target: Target) -> Array:
    return check_winograd(implementation, conv, target, 3e-6)


@pytest.mark.parametrize("sizes", PROBLEMS)
@EACH
def test_against_loops(implementation: Implementation, sizes: str) -> None:
    """The same bits with one thread and with two."""
    found = [check(implementation, problem_of(sizes), Target(threads=threads)) for threads in (1, 2)]
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("vector_bytes", [16, 64])
@EACH
def test_narrow_and_wide_vectors(implementation: Implementation, vector_bytes: int) -> None:
    check(implementation, problem_of("n2 c10 h9 w41 k14 p1"), Target(vector_bytes=vector_bytes, threads=2))


@pytest.mark.parametrize("blocks", [(1, 1), (2, 1), (1, 2), (3, 3)])
def test_blocks_do_not_change_the_bits(monkeypatch: pytest.MonkeyPatch, blocks: tuple[int, int]) -> None:
    conv = problem_of("n2 c70 h21 w30 k40 p1")
    op, inputs = op_and_inputs(conv, *operands(conv))
    for implementation in ALL:
        (usual,) = run_kernel(implementation, op, *inputs, threads=1)
        with monkeypatch.context() as patched:
            patched.setattr(conv_winograd_wgrad, "choose_blocks", lambda *_: blocks)
            (found,) = run_kernel(implementation, op, *inputs, threads=2)
        np.testing.assert_array_equal(found, usual)


@EACH
def test_many_chunks_of_tiles(monkeypatch: pytest.MonkeyPatch, implementation: Implementation) -> None:
    for nbytes in (1, 200_000):
        monkeypatch.setattr(conv_winograd_wgrad, "_CHUNK_BYTES", nbytes)
        check(implementation, problem_of("n2 c20 h13 w18 k40 p1 g2"), Target(threads=2))


@pytest.mark.parametrize(("sizes", "direct"), [
    ("n1 c16 h7 w7 k32 p1", ConvWgradDirect()), ("n1 c32 h7 w7 k32 p1", ConvWgradDirect()),
    ("n1 c16 h56 w56 k32 p1", ConvWgradDirect()),
    ("n1 c32 h8 w8 k64 p1", ConvWgrad()), ("n8 c32 h7 w7 k64 p1", ConvWgrad()), ("n1 c32 h28 w28 k64 p1", ConvWgrad()),
    ("n8 c32 h14 w14 k64 p1", ConvWgrad()), ("n1 c32 h112 w112 k64 p1", ConvWgrad())])
def test_errors_stay_within_the_stated_bound(sizes: str, direct: Implementation) -> None:
    """Root of the mean square and largest error: at most 4 times the direct kernel's, or direct sums' where it refuses."""
    conv = problem_of(sizes)
    x, w, y = operands(conv, seed=3)
    op, inputs = op_and_inputs(conv, x, w, y)
    problem, target = make_problem(op, *inputs), Target(threads=2)
    assert (ConvWgradDirect().refuse(problem, target) is None) is isinstance(direct, ConvWgradDirect)
    wanted = expected(conv, x, w, y)[0]
    least = np.abs(run_kernel(direct, op, *inputs, target=target)[0] - wanted)
    taking = [each for each in CONV_WINOGRAD_WGRAD if each.refuse(problem, target) is None]
    assert taking
    for implementation in taking:
        found = np.abs(run_kernel(implementation, op, *inputs, target=target)[0] - wanted)
        assert np.sqrt(np.mean(found ** 2)) <= 4 * np.sqrt(np.mean(least ** 2)), implementation.name
        assert found.max() <= 4 * least.max(), implementation.name


@EACH
def test_epilogues(implementation: Implementation) -> None:
    f32 = "float32"
    body = (Instruction("mul", (0, 1), f32), Instruction("add", (3, 2), f32))
    conv = problem_of("n2 c16 h9 w13 k16 p1 g2")
    x, w, y = operands(conv)
    wanted, magnitude = expected(conv, x, w, y)
    rng = np.random.default_rng(5)
    channel, full = rng.standard_normal((wanted.shape[1],)).astype(f32), rng.standard_normal(wanted.shape).astype(f32)
    for places, extra, finished in ((("channel", "full"), [channel, full], wanted * channel.astype(float).reshape(-1, 1, 1) + full),
                                    (("full", "full"), [full, full], wanted * full + full)):
        op, inputs = op_and_inputs(conv, x, w, y, Epilogue(ScalarProgram((f32, f32, f32), body, (4,)), places))
        (found,) = run_kernel(implementation, op, *inputs, *extra, threads=2)
        np.testing.assert_allclose(found, finished, rtol=0, atol=1e-5 * magnitude.max())


def test_few_filters_are_refused() -> None:
    conv = problem_of("n1 c32 h8 w8 k32 p1")
    op, inputs = op_and_inputs(conv, *operands(conv))
    reasons = [each.refuse(make_problem(op, *inputs), Target()) for each in CONV_WINOGRAD_WGRAD]
    assert "32 times 32" in (reasons[0] or "")
    assert reasons[1] is None
    conv = problem_of("n1 c16 h8 w8 k16 p1")
    op, inputs = op_and_inputs(conv, *operands(conv))
    assert all("16 times 16" in (each.refuse(make_problem(op, *inputs), Target()) or "") for each in CONV_WINOGRAD_WGRAD)


def test_few_tiles_are_refused() -> None:
    for sizes, wanted in (("n3 c64 h4 w4 k64 p1", ("3 tiles", "12 tiles")), ("n4 c64 h4 w4 k64 p1", ("", ""))):
        conv = problem_of(sizes)
        op, inputs = op_and_inputs(conv, *operands(conv))
        reasons = [each.refuse(make_problem(op, *inputs), Target()) for each in CONV_WINOGRAD_WGRAD]
        for reason, text in zip(reasons, wanted, strict=True):
            assert text in (reason or "")
            assert (reason is None) is (not text)


@pytest.mark.parametrize(("text", "reason"), [
    ("fprop n1 c8 h9 w9 k8 r3 s3 p1 f32", "filter gradients"),
    ("wgrad n1 c8 h9 w9 k8 r3 s3 p1 f64", "float64"),
    ("wgrad n1 c64 h9 w9 k64 r3 s3 p1 f32@f64", "not in float64"),
    ("wgrad n1 c8 h8 w8 k8 r5 s5 p2 f32", "3x3"),
    ("wgrad n1 c64 w8 k64 s3 f32", "3x3"),
    ("wgrad n1 c8 h9 w9 k8 r3 s3 u2 p1 f32", "stride"),
    ("wgrad n1 c8 h9 w9 k8 r3 s3 l2 p1 f32", "dilation"),
    ("wgrad n1 c8 h8 w8 k16 r3 s3 p1 g8 f32", "group"),
])
def test_refusals_say_why(text: str, reason: str) -> None:
    conv = ConvProblem.parse(text)
    op, inputs = op_and_inputs(conv, *operands(conv))
    for implementation in CONV_WINOGRAD_WGRAD:
        assert reason in (implementation.refuse(make_problem(op, *inputs), Target()) or ""), implementation.name


def test_the_setting_turns_it_off() -> None:
    conv = problem_of("n1 c64 h28 w28 k64 p1")
    op, inputs = op_and_inputs(conv, *operands(conv))
    with config.change(conv__winograd="off"):
        assert all("conv.winograd" in (each.refuse(make_problem(op, *inputs), Target()) or "") for each in CONV_WINOGRAD_WGRAD)


def test_chosen_where_it_is_faster() -> None:
    for sizes, wanted in (("n8 c64 h56 w56 k64 p1", True), ("n8 c512 h7 w7 k512 p1", True), ("n8 c1 h28 w28 k4 p1", False)):
        conv = problem_of(sizes)
        op, inputs = op_and_inputs(conv, *operands(conv))
        problem, target = make_problem(op, *inputs), Target(threads=2)
        taking = [each for each in CONV_WINOGRAD_WGRAD if each.refuse(problem, target) is None]
        best = min([each.estimate(problem, target) for each in taking], default=np.inf)
        assert (best < ConvWgrad().estimate(problem, target)) is wanted, sizes


def test_one_source_serves_every_size() -> None:
    sources = set()
    for sizes in ("n1 c8 h20 w20 k8 p1", "n3 c64 h7 w9 k32 p0", "n2 c16 h56 w56 k16 p2 g2 flip"):
        conv = problem_of(sizes)
        op, inputs = op_and_inputs(conv, *operands(conv))
        sources.add(ConvWinogradWgrad(4, 1, 1).build(make_problem(op, *inputs), Target()).source)
    assert len(sources) == 1
