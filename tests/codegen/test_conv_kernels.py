"""The convolution kernels against loops over the kernel's elements in float64, on corner shapes, with every epilogue."""
from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from conv_oracle import Array, expected, op_and_inputs, operands
from kernel_runner import make_problem, run_kernel

from symconv.codegen.convolution import CONV_IMPLEMENTATIONS, refuse_epilogue
from symconv.codegen.implementation import Implementation
from symconv.ops.conv_problem import ConvProblem, parse_problems
from symconv.ops.convolution import Conv
from symconv.ops.epilogue import Epilogue
from symconv.ops.scalar import Instruction, ScalarProgram
from symconv.ops.spec import ConvSpec, Kind
from symconv.target import Target

CORNERS = parse_problems((Path(__file__).parents[1] / "problems" / "conv_corners.txt").read_text())
TOLERANCE = {"float32": 3e-6, "float64": 1e-12}  # of the sum of the magnitudes of the terms


def accepting(op: Conv, inputs: list[Array]) -> list[Implementation]:
    problem = make_problem(op, *inputs)
    return [each for each in CONV_IMPLEMENTATIONS if each.refuse(problem, Target()) is None]


def check(conv: ConvProblem, threads: int) -> None:
    x, w, y = operands(conv)
    op, inputs = op_and_inputs(conv, x, w, y)
    wanted, magnitude = expected(conv, x, w, y)
    implementations = accepting(op, inputs)
    assert implementations, f"nothing runs {conv}"
    for implementation in implementations:
        (found,) = run_kernel(implementation, op, *inputs, threads=threads)
        assert found.dtype == conv.dtype
        # transforms round as the largest numbers of a tile, also where a result has few terms
        bound = magnitude.max(initial=0) if implementation.name in ("conv_fft", "conv_wgrad_fft") else magnitude
        wrong = np.abs(found - wanted) > TOLERANCE[conv.dtype] * bound
        assert not wrong.any(), f"{implementation.name}, {conv}: {wrong.sum()} of {wrong.size} wrong, first {np.argwhere(wrong)[0]}"


@pytest.mark.parametrize("conv", CORNERS, ids=str)
def test_against_loops(conv: ConvProblem) -> None:
    check(conv, threads=2)
    check(replace(conv, dtype="float64", result_dtype="float64"), threads=1)


def _unaligned(array: Array) -> Array:
    """The same values one element off an address that is a multiple of 64."""
    raw = np.zeros(array.nbytes + 128, np.uint8)
    start = -raw.ctypes.data % 64 + array.itemsize
    view = raw[start:start + array.nbytes].view(array.dtype).reshape(array.shape)
    view[...] = array
    return view


def _every_second(array: Array) -> Array:
    """The same values with gaps along the last axis and reversed along the first."""
    wide = np.zeros((*array.shape[:-1], 2 * array.shape[-1]), array.dtype)
    wide[::-1, ..., ::2] = array
    return wide[::-1, ..., ::2]


@pytest.mark.parametrize("conv", [conv for conv in CORNERS if math.prod(conv.y_shape) < 4000], ids=str)
def test_where_inputs_lie_in_memory_changes_no_bit(conv: ConvProblem) -> None:
    op, inputs = op_and_inputs(conv, *operands(conv))
    for implementation in accepting(op, inputs):
        (wanted,) = run_kernel(implementation, op, *inputs, threads=2)
        for move in (_unaligned, _every_second):
            (found,) = run_kernel(implementation, op, *map(move, inputs[:2]), *inputs[2:], threads=2)
            np.testing.assert_array_equal(found, wanted, err_msg=f"{implementation.name}, {move.__name__}")


@pytest.mark.parametrize("seed", range(12))
def test_random_specs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(6):
        ndim, groups = int(rng.integers(1, 4)), int(rng.choice([1, 1, 2, 3]))
        kernel = rng.integers(1, 4, ndim)
        dilation, stride = rng.integers(1, 4, ndim), rng.integers(1, 4, ndim)
        low, high = rng.integers(0, 4, ndim), rng.integers(0, 4, ndim)
        size = np.maximum((kernel - 1) * dilation + 1 - low - high, 1) + rng.integers(0, 12 if ndim < 3 else 5, ndim)
        numbers = (tuple(map(int, values)) for values in (stride, dilation, low, high))
        spec = ConvSpec(ndim, *numbers, groups, bool(rng.integers(2)))
        channels, filters = groups * int(rng.integers(1, 5)), groups * int(rng.integers(1, 9))
        x_shape = (int(rng.integers(1, 4)), channels, *map(int, size))
        for kind in Kind:
            check(ConvProblem(kind, spec, x_shape, (filters, channels // groups, *map(int, kernel)), "float64", "float64"), 2)


@pytest.mark.parametrize("sizes", ["n2 c70 h64 w68 k9 r1 s1", "n2 c70 h64 w68 k9 r1 s1 u2", "n3 c40 h60 w60 k13 r3 s3 p1 u2",
                                   "n1 c80 h65 w70 k7 r3 s3 p2 l2", "n3 c24 d6 h30 w30 k8 t2 r3 s3 p1",
                                   "n9 c200 h14 w14 k50 r1 s1"])
@pytest.mark.parametrize("kind", ["fprop", "dgrad"])
def test_images_beyond_the_second_cache(kind: str, sizes: str) -> None:
    """Such images are asked for ahead; a stride's phases may have no taps."""
    check(ConvProblem.parse(f"{kind} {sizes} f32"), threads=2)


def test_threads_do_not_change_bits() -> None:
    for text in ("fprop n3 c5 h20 w20 k7 r3 s3 p1 f32", "dgrad n3 c5 h20 w20 k7 r3 s3 p1 u2 f32",
                 "wgrad n9 c5 h40 w40 k7 r3 s3 f32"):
        conv = ConvProblem.parse(text)
        op, inputs = op_and_inputs(conv, *operands(conv))
        for implementation in accepting(op, inputs):
            one, two = (run_kernel(implementation, op, *inputs, threads=threads)[0] for threads in (1, 2))
            np.testing.assert_array_equal(one, two)


def _bias_relu(dtype: str) -> Epilogue:
    return Epilogue(ScalarProgram((dtype, dtype), (Instruction("add", (0, 1), dtype), Instruction("relu", (2,), dtype)), (3,)),
                    ("channel",))


def _scale_residual_tanh(dtype: str) -> Epilogue:
    body = (Instruction("mul", (0, 1), dtype), Instruction("add", (3, 2), dtype), Instruction("tanh", (4,), dtype))
    return Epilogue(ScalarProgram((dtype, dtype, dtype), body, (5,)), ("channel", "full"))


@pytest.mark.parametrize("text", [
    "fprop n2 c3 h9 w16 k5 r3 s3 p1 f32", "fprop n2 c100 h8 w8 k7 r3 s3 p1 f32", "dgrad n2 c3 h9 w11 k5 r3 s3 u2 f32",
    "dgrad n1 c2 h10 w10 k3 r2 s2 u4 f32", "wgrad n2 c3 h9 w11 k5 r3 s3 p1 f32", "fprop n2 c0 h4 w4 k3 r1 s1 f32",
    "fprop n2 c6 h9 w11 k6 r3 s3 p1 g6 f32", "wgrad n1 c70 h5 w5 k40 r3 s3 p1 f32", "fprop n1 c2 h5 w5 k3 r1 s1 f64"])
def test_epilogues(text: str) -> None:
    conv = ConvProblem.parse(text)
    x, w, y = operands(conv)
    wanted, magnitude = expected(conv, x, w, y)
    rng = np.random.default_rng(5)
    along = (1, -1) + (1,) * (wanted.ndim - 2)
    for epilogue in (_bias_relu(conv.dtype), _scale_residual_tanh(conv.dtype)):
        assert refuse_epilogue(epilogue, conv.dtype) is None
        extra = [rng.standard_normal(wanted.shape[1] if place == "channel" else wanted.shape).astype(conv.dtype)
                 for place in epilogue.operands]
        channel = extra[0].astype(np.float64).reshape(along)
        finished = np.maximum(wanted + channel, 0) if len(extra) == 1 else np.tanh(wanted * channel + extra[1])
        op, inputs = op_and_inputs(conv, x, w, y, epilogue)
        implementations = accepting(op, [*inputs, *extra])
        assert implementations
        for implementation in implementations:
            (found,) = run_kernel(implementation, op, *inputs, *extra, threads=2)
            allowed = TOLERANCE[conv.dtype] * (magnitude * (1 + abs(channel)) + 1)
            assert (np.abs(found - finished) <= allowed).all(), implementation.name


def test_refusals_say_why() -> None:
    conv = ConvProblem.parse("fprop n1 c2 h5 w5 k3 r3 s3 f16")
    op, inputs = op_and_inputs(conv, *operands(conv))
    reasons = [each.refuse(make_problem(op, *inputs), Target()) for each in CONV_IMPLEMENTATIONS]
    assert all(reasons)
    assert any("float16" in reason for reason in reasons if reason)
    wide = ConvProblem.parse("fprop n1 c2 h5 w5 k3 r3 s3 f32@f64")
    op, inputs = op_and_inputs(wide, *operands(wide))
    assert all(each.refuse(make_problem(op, *inputs), Target()) for each in CONV_IMPLEMENTATIONS)
    cast = Epilogue(ScalarProgram(("float32",), (Instruction("cast", (0,), "float64"),), (1,)))
    assert "float64" in (refuse_epilogue(cast, "float32") or "")


def test_a_new_batch_size_compiles_nothing() -> None:
    sources = set()
    for batch in (1, 3, 50):
        conv = ConvProblem.parse(f"fprop n{batch} c3 h20 w20 k8 r3 s3 p1 f32")
        op, inputs = op_and_inputs(conv, *operands(conv))
        sources |= {each.build(make_problem(op, *inputs), Target()).source for each in CONV_IMPLEMENTATIONS[:1]}
    assert len(sources) == 1


@pytest.mark.parametrize("vector_bytes", [16, 64])
def test_narrow_and_wide_vectors(vector_bytes: int) -> None:
    texts = ("wgrad n2 c5 h9 w21 k14 r3 s3 p1 f32", "fprop n2 c5 h9 w21 k14 r3 s3 p1 f32")
    for text in texts if vector_bytes == 16 else texts[1:]:  # where the machine has no such vectors, compiling takes long
        problem = ConvProblem.parse(text)
        x, w, y = operands(problem)
        wanted, magnitude = expected(problem, x, w, y)
        op, inputs = op_and_inputs(problem, x, w, y)
        implementation = accepting(op, inputs)[0 if vector_bytes == 16 else -1]
        (found,) = run_kernel(implementation, op, *inputs, target=Target(vector_bytes=vector_bytes, threads=2))
        assert (np.abs(found - wanted) <= 3e-6 * magnitude).all(), implementation.name
