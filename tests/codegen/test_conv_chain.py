"""Chains of expansion, depthwise convolution and projection in one kernel against the stages one by one in float64 loops."""
from __future__ import annotations

import numpy as np
import pytest
from conv_oracle import expected, operands
from kernel_runner import make_problem, run_kernel

from symconv.codegen.blocked import moving_seconds
from symconv.codegen.conv_chain import DEPTHWISE_SHARE, POINTWISE_SHARE, ConvChainBlocked
from symconv.codegen.gemm_tile import START_SECONDS, compute_seconds
from symconv.codegen.kernel import Problem
from symconv.errors import InternalError
from symconv.ops.conv_problem import ConvProblem
from symconv.ops.convolution import Conv
from symconv.ops.epilogue import Epilogue
from symconv.ops.layout import Layout, array_from_blocked, array_to_blocked
from symconv.ops.lowered.conv_chain import ConvChain
from symconv.ops.scalar import Instruction, ScalarProgram
from symconv.ops.spec import Kind, make_spec
from symconv.target import Target

F32 = "float32"
CLIPPED = Epilogue(ScalarProgram((F32, F32), (
    Instruction("add", (0, 1), F32), Instruction("constant", (), F32, 0.25), Instruction("constant", (), F32, 1.0),
    Instruction("clip", (2, 3, 4), F32)), (5,)), ("channel",))  # 0.25 and not 0: zeros of the padding are no results of the clip
RESIDUAL = Epilogue(ScalarProgram((F32,) * 3, (
    Instruction("add", (0, 1), F32), Instruction("add", (3, 2), F32)), (4,)), ("channel", "full"))

CHAINS = [
    # expand to (0: no expansion), depthwise problem, projection to
    (0, "n1 c8 h1 w1 k8 r3 s3 p1 g8", 8),
    (0, "n2 c16 h9 w9 k16 r3 s3 p1 g16", 24),
    (24, "n2 c24 h9 w13 k24 r3 s3 p1 g24", 8),
    (16, "n1 c16 h30 w30 k16 r3 s3 u2 p1 g16", 16),
    (16, "n1 c16 h31 w29 k16 r3 s3 u2 p0:1 g16", 8),
    (8, "n3 c8 h14 w9 k8 r5 s3 u1x3 l2x1 p3x2 g8 flip", 40),
    (16, "n1 c16 h12 w12 k16 r2 s2 u2 g16", 8),
    (16, "n2 c16 w50 k16 s5 p2 g16", 8),
    (16, "n0 c16 h9 w9 k16 r3 s3 p1 g16", 8),
    # enough work for two threads: they share the middle, pairs of blocks first; several chunks of lines
    (40, "n1 c40 h30 w33 k40 r3 s3 p1 g40", 24),
    (16, "n2 c16 h41 w120 k16 r3 s3 u2 p1 g16", 8),
    (16, "n3 c16 h60 w60 k16 r2 s2 u3 g16", 40),
    (0, "n1 c24 h60 w60 k24 r5 s5 l2 p4 g24", 24),
    # a task for lines of its own, several chunks of them
    (32, "n5 c32 h40 w60 k32 r3 s3 p1 g32", 16),
]


def _stage(x: np.ndarray, conv: ConvProblem, epilogue: Epilogue, rng: np.random.Generator) -> tuple[np.ndarray, list[np.ndarray]]:
    """The stage's result in float64, and its own inputs: filters, bias, and for a residual a tensor of the result's shape."""
    _, w, _ = operands(conv)
    w = (w / np.sqrt(max(1, np.prod(w.shape[1:])))).astype(F32)
    result, _ = expected(conv, x, w.astype(np.float64), np.zeros(conv.y_shape))
    bias = rng.standard_normal(result.shape[1]).astype(F32)
    result = result + bias.reshape(-1, *[1] * conv.spec.ndim)
    if epilogue is CLIPPED:
        return np.clip(result, 0.25, 1.0), [w, bias]
    residual = rng.standard_normal(result.shape).astype(F32)
    return result + residual, [w, bias, np.ascontiguousarray(array_to_blocked(residual, 8))]


def _pointwise(n: int, channels: int, sizes: tuple[int, ...], filters: int) -> ConvProblem:
    letters = "dhw"[-len(sizes):]
    image = " ".join(f"{letter}{size}" for letter, size in zip(letters, sizes, strict=True))
    taps = " ".join(f"{letter}1" for letter in "trs"[-len(sizes):])
    return ConvProblem.parse(f"fprop n{n} c{channels} {image} k{filters} {taps} f32")


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("middle", "text", "filters"), CHAINS)
def test_chains(middle: int, text: str, filters: int, threads: int) -> None:
    rng = np.random.default_rng(5)
    depthwise = ConvProblem.parse(f"fprop {text} f32")
    n, channels, *sizes = depthwise.x_shape
    problems = [depthwise, _pointwise(n, channels, depthwise.y_shape[2:], filters)]
    if middle:
        problems.insert(0, _pointwise(n, 16, tuple(sizes), channels))
    x = rng.standard_normal(problems[0].x_shape).astype(F32)
    value, inputs, stages = x.astype(np.float64), [np.ascontiguousarray(array_to_blocked(x, 8))], []
    for conv in problems:
        epilogue = RESIDUAL if conv is problems[-1] else CLIPPED
        value, own = _stage(value, conv, epilogue, rng)
        inputs += own
        stages.append(Conv(Kind.FPROP, conv.spec, epilogue, layout=Layout(8, 8)))
    chain = ConvChain(tuple(stages))
    (found,) = run_kernel(ConvChainBlocked(), chain, *inputs, threads=threads, target=Target(threads=threads, vector_bytes=32))
    found = array_from_blocked(found, 8)
    assert found.shape == value.shape
    np.testing.assert_allclose(found, value, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(array_from_blocked(chain.reference(*inputs)[0], 8), value, rtol=1e-5, atol=1e-5)


def _small_chain(batch: int, size: int, middle: int, channels: int = 16) -> Problem:
    """Expansion, depthwise convolution and projection to as many channels as there were."""
    depthwise = ConvProblem.parse(f"fprop n{batch} c{middle} h{size} w{size} k{middle} r3 s3 p1 g{middle} f32")
    problems = [_pointwise(batch, channels, (size, size), middle), depthwise, _pointwise(batch, middle, (size, size), channels)]
    chain = ConvChain(tuple(Conv(Kind.FPROP, conv.spec, layout=Layout(8, 8)) for conv in problems))
    inputs = [np.empty((batch, channels // 8, size, size, 8), F32), *(np.empty(conv.w_shape, F32) for conv in problems)]
    return make_problem(chain, *inputs)


def _cut_of(batch: int, size: int, middle: int, threads: int) -> tuple[int, int, int, int]:
    """Lines of a task and of a chunk, whether the middle is shared, and parts of its pixels, of a chain of 16 to 16 channels."""
    numbers = ConvChainBlocked().build(_small_chain(batch, size, middle), Target(threads=threads, vector_bytes=32)).sizes
    return numbers[12], numbers[13], numbers[14], numbers[15]


def test_the_estimate_waits_for_no_filters_and_makes_no_padding() -> None:
    """MobileNetV2's last chains: 1.2 MB of filters, 31 kB of pixels read and written."""
    target = Target(threads=2, vector_bytes=32)
    flops = 2 * 49 * 960
    products = (compute_seconds(2 * 160 * flops, F32, target, POINTWISE_SHARE)
                + compute_seconds(9 * flops, F32, target, DEPTHWISE_SHARE))
    moved = moving_seconds(2 * 4 * 49 * 160, target)
    assert ConvChainBlocked().estimate(_small_chain(1, 7, 960, 160), target) == pytest.approx(products + 2 * START_SECONDS + moved)


def test_the_middle_is_shared_where_there_are_too_few_images() -> None:
    """Two threads and one image of 14 lines: in tasks of lines 6 of 20 would be made twice."""
    assert _cut_of(1, 14, 384, 2) == (14, 14, 1, 16)
    assert _cut_of(1, 28, 192, 2)[:3] == (28, 14, 1)
    assert _cut_of(8, 14, 384, 2)[:3] == (7, 7, 0), "images enough"
    assert _cut_of(1, 14, 384, 1)[2] == 0, "nobody to share with"
    assert _cut_of(1, 112, 96, 2)[2] == 0, "more than the caches hold"
    assert _cut_of(1, 28, 32, 2)[:3] == (7, 7, 1), "two pairs of blocks are too few tasks"


def test_other_chains_are_refused() -> None:
    dense = Conv(Kind.FPROP, make_spec(2, 1), layout=Layout(8, 8))
    point = Conv(Kind.FPROP, make_spec(2), layout=Layout(8, 8))
    x, w = np.zeros((1, 1, 5, 5, 8), F32), np.zeros((8, 8, 3, 3), F32)
    problem = make_problem(ConvChain((dense, point)), x, w, np.zeros((8, 8, 1, 1), F32))
    assert "a depthwise one" in str(ConvChainBlocked().refuse(problem, Target(vector_bytes=32)))
    assert "blocks of 16" in str(ConvChainBlocked().refuse(problem, Target(vector_bytes=64)))
    with pytest.raises(InternalError, match="chain of convolutions"):
        ConvChain((point,))
