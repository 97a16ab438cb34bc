"""The convolution op: its three kinds, the one gradient rule, dtypes, epilogues, shapes and errors."""
from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from convolution_sweep import compare
from plain_convolution import Setting, plain_dgrad, plain_fprop, plain_wgrad
from support import evaluate

from symconv.errors import GraphTypeError, InternalError, ShapeError
from symconv.graph import TensorType, Variable, apply_op
from symconv.graph.gradient import grad
from symconv.ops.constants import constant
from symconv.ops.conv_builders import conv_dgrad, conv_fprop, conv_transpose, conv_wgrad
from symconv.ops.conv_problem import ConvProblem
from symconv.ops.convolution import Conv
from symconv.ops.epilogue import Epilogue
from symconv.ops.scalar import Instruction, ScalarProgram
from symconv.ops.spec import Kind, make_spec

Array = np.ndarray[Any, Any]
PROBLEMS = Path(__file__).parents[1] / "problems"
SMALL = [line for line in (PROBLEMS / "conv_small.txt").read_text().splitlines() if not line.startswith("#")]


def variable(name: str, *shape: int | None, dtype: str = "float64") -> Variable:
    return Variable(TensorType(dtype, shape), name)


def plain(problem: ConvProblem, arrays: dict[str, Array]) -> Array:
    """The problem's answer by plain loops in float64."""
    spec = problem.spec
    pads = tuple(zip(spec.pad_lo, spec.pad_hi, strict=True))
    setting = Setting(problem.x_shape[0], problem.x_shape[1], problem.x_shape[2:], problem.w_shape[0], problem.w_shape[2:],
                      spec.stride, spec.dilation, pads, spec.groups, spec.flip)
    first, second = (arrays[role].astype(np.float64) for role in problem.kind.reads)
    if problem.kind is Kind.FPROP:
        return plain_fprop(first, second, setting)
    return (plain_dgrad if problem.kind is Kind.DGRAD else plain_wgrad)(first, second, setting)


@pytest.mark.parametrize("line", SMALL)
def test_problems_of_the_file_agree_with_plain_loops(line: str) -> None:
    problem = ConvProblem.parse(line)
    rng = np.random.default_rng(len(line))
    shapes = {"x": problem.x_shape, "w": problem.w_shape, "y": problem.y_shape}
    arrays = {role: rng.normal(size=shape).astype(problem.dtype) for role, shape in shapes.items()}
    inputs: list[Variable] = [constant(arrays[role]) for role in problem.kind.reads]
    if problem.kind is not Kind.FPROP:
        inputs.append(constant(np.array(problem.result_shape)))
    node = apply_op(Conv(problem.kind, problem.spec), *inputs)
    (found,) = evaluate([node])
    assert found.dtype == problem.result_dtype
    rtol = {"float64": 1e-10, "float32": 1e-5, "float16": 2e-3}[problem.dtype]
    compare(line, found.astype(np.float64), plain(problem, arrays), rtol, None)
    assert node.apply is not None
    types = [TensorType(problem.dtype, shapes[role]) for role in problem.kind.reads]
    assert str(node.apply.op.problem(types, TensorType(problem.dtype, problem.result_shape))) == line


def test_correlation_and_true_convolution_of_nine_numbers() -> None:
    image, kernel = constant(np.arange(9.0).reshape(1, 1, 3, 3)), constant(np.array([[[[1.0, 2.0], [3.0, 4.0]]]]))
    cross, true = evaluate([conv_fprop(image, kernel, make_spec(2)), conv_fprop(image, kernel, make_spec(2, flip=True))])
    np.testing.assert_array_equal(cross[0, 0], [[27, 37], [57, 67]])
    np.testing.assert_array_equal(true[0, 0], [[13, 23], [43, 53]])


def differences(cost: Variable, variables: list[Variable], points: list[Array], step: float = 1e-5) -> list[Array]:
    """The gradient of a scalar by central differences."""
    slopes = [np.zeros_like(point) for point in points]
    for number, slope in enumerate(slopes):
        for place in np.ndindex(slope.shape):
            ends = []
            for shift in (step, -step):
                moved = [point.copy() for point in points]
                moved[number][place] += shift
                ends.append(float(evaluate([cost], dict(zip(variables, moved, strict=True)))[0]))
            slope[place] = (ends[0] - ends[1]) / (2 * step)
    return slopes


def assert_gradients(function: Callable[..., Variable], *points: Array) -> None:
    """First and second gradients of a weighted sum of `function` equal differences."""
    rng = np.random.default_rng(7)
    variables = [Variable(TensorType("float64", point.shape)) for point in points]

    def weighted(x: Variable) -> Variable:
        return (x * rng.normal(size=x.type.static_shape)).sum()

    cost = weighted(function(*variables))
    for _ in range(2):
        gradients = grad(cost, variables)
        found = evaluate(gradients, dict(zip(variables, points, strict=True)))
        for one, other in zip(found, differences(cost, variables, list(points)), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5 * np.abs(other).max())
        cost = weighted(gradients[0]) + weighted(gradients[1])


GRADIENT_SPECS = [
    (1, {"border_mode": ((2, 0),), "stride": 2, "dilation": 2, "flip": True}, (2, 4, 7), (2, 2, 3), 2),
    (2, {"border_mode": "same", "stride": (2, 1), "dilation": (1, 2)}, (2, 2, 5, 4), (3, 2, 2, 2), 1),
    (2, {"border_mode": "full", "stride": 3, "flip": True}, (1, 2, 3, 4), (2, 1, 2, 3), 2),
    (3, {"border_mode": (0, 1, (0, 1)), "stride": (1, 2, 1)}, (1, 1, 2, 3, 3), (2, 1, 2, 2, 1), 1),
]


@pytest.mark.parametrize(("ndim", "words", "x_shape", "w_shape", "groups"), GRADIENT_SPECS)
def test_gradients_of_both_orders_equal_differences(ndim: int, words: Any, x_shape: Any, w_shape: Any, groups: int) -> None:
    spec, rng = make_spec(ndim, groups=groups, **words), np.random.default_rng(3)
    x, w = rng.normal(size=x_shape), rng.normal(size=w_shape)
    y_shape = conv_fprop(constant(x), constant(w), spec).type.static_shape
    u = rng.normal(size=y_shape)
    assert_gradients(lambda x, w: conv_fprop(x, w, spec) ** 2, x, w)
    assert_gradients(lambda u, w: conv_dgrad(u, w, x_shape, spec) ** 2, u, w)
    assert_gradients(lambda x, u: conv_wgrad(x, u, w_shape, spec) ** 2, x, u)


def test_the_gradient_of_every_kind_is_the_kind_that_makes_the_input() -> None:
    spec = make_spec(2, "half", 2)
    x, w, u = variable("x", None, 4, None, 9), variable("w", 6, 4, 3, 3), variable("u", None, 6, None, 5)
    for result in (conv_fprop(x, w, spec), conv_dgrad(u, w, x.shape, spec), conv_wgrad(x, u, w.shape, spec)):
        node = result.apply
        assert node is not None
        gradients = node.op.grad(node, [result])
        assert len(gradients) == len(node.inputs)
        for role, like, gradient in zip(node.op.kind.reads, node.inputs, gradients, strict=False):
            assert gradient is not None
            assert gradient.apply is not None
            assert gradient.apply.op.kind.produces == role
            assert gradient.type == like.type
        assert all(each is None for each in gradients[2:])
        assert node.op.grad(node, [None]) == (None,) * len(node.inputs)


def test_gradients_through_padding_that_waits_for_the_image() -> None:
    x, w = variable("x", None, 1, None), variable("w", 2, 1, 3)
    spec = make_spec(1, "same", 2)
    gx, gw = grad((conv_fprop(x, w, spec) ** 2).sum(), [x, w])
    for size in (7, 8):
        setting = Setting(2, 1, (size,), 2, (3,), (2,), (1,), "same", 1, False)
        rng = np.random.default_rng(size)
        xa, wa = rng.normal(size=(2, 1, size)), rng.normal(size=(2, 1, 3))
        found = evaluate([gx, gw], {x: xa, w: wa})
        u = 2 * plain_fprop(xa, wa, setting)
        np.testing.assert_allclose(found[0], plain_dgrad(u, wa, setting), rtol=1e-10)
        np.testing.assert_allclose(found[1], plain_wgrad(xa, u, setting), rtol=1e-10)


def test_half_floats_are_summed_in_float32() -> None:
    ones = constant(np.ones((1, 512, 3, 3), np.float16))
    assert evaluate([conv_fprop(ones, ones, make_spec(2))])[0].item() == 4608
    many = constant(np.ones((1, 1, 4096, 1), np.float16))
    (total,) = evaluate([conv_wgrad(many, many, (1, 1, 1, 1), make_spec(2))])
    assert (total.dtype, total.item()) == (np.float16, 4096)


def test_the_compute_dtype_is_honoured() -> None:
    x = np.array([1.0, 2.0**-30, -1.0], np.float32).reshape(1, 3, 1)
    w = np.ones((1, 3, 1), np.float32)
    (exact,) = evaluate([conv_fprop(constant(x), constant(w), make_spec(1, compute_dtype="float64"))])
    assert (exact.dtype, exact.item()) == (np.float32, 2.0**-30)


def test_dtypes_meet_in_the_wider_one() -> None:
    x, w = variable("x", 1, 2, 5, dtype="float32"), variable("w", 3, 2, 2)
    assert conv_fprop(x, w, make_spec(1)).dtype == "float64"
    gx, gw = grad(conv_fprop(x, w, make_spec(1)).sum(), [x, w])
    assert (gx.dtype, gw.dtype) == ("float32", "float64")


def fused(dtype: str = "float32", out: str = "float32") -> Epilogue:
    """relu(scale-free bias + residual), then cast."""
    body = (Instruction("add", (0, 1), dtype), Instruction("add", (3, 2), dtype), Instruction("relu", (4,), dtype),
            Instruction("cast", (5,), out))
    return Epilogue(ScalarProgram((dtype,) * 3, body, (6,)), ("channel", "full"))


@pytest.mark.parametrize("kind", [Kind.FPROP, Kind.DGRAD])
def test_an_epilogue_is_what_its_program_says(kind: Kind) -> None:
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(2, 3, 5, 5)), rng.normal(size=(4, 3, 3, 3))
    spec = make_spec(2, 1)
    first = x if kind is Kind.FPROP else rng.normal(size=(2, 4, 5, 5))
    shape = [] if kind is Kind.FPROP else [constant(np.array(x.shape))]
    inputs = [constant(first), constant(w), *shape]
    (bare,) = evaluate([apply_op(Conv(kind, spec), *inputs)])
    bias, residual = rng.normal(size=bare.shape[1]), rng.normal(size=bare.shape)
    op = Conv(kind, spec, fused("float64", "float32"))
    node = apply_op(op, *inputs, constant(bias), constant(residual))
    (found,) = evaluate([node])
    assert (found.dtype, node.dtype) == (np.float32, "float32")
    np.testing.assert_allclose(found, np.maximum(bare + bias[:, None, None] + residual, 0).astype(np.float32), rtol=1e-6)
    with pytest.raises(InternalError, match="epilogues are fused after gradients"):
        op.grad(node.apply, [node])  # type: ignore[arg-type]
    with pytest.raises(InternalError, match="epilogue operand"):
        apply_op(op, *inputs, constant(bias[1:]), constant(residual))
    with pytest.raises(InternalError, match="inputs"):
        apply_op(op, *inputs, constant(bias))


def test_static_shapes_are_inferred_as_far_as_they_are_known() -> None:
    x, w, u = variable("x", None, 4, None, 9), variable("w", 6, 2, 3, 3), variable("u", 7, None, None, 9)
    spec = make_spec(2, 1, groups=2)
    assert conv_fprop(x, w, spec).type.shape == (None, 6, None, 9)
    assert conv_dgrad(u, w, None, spec).type.shape == (7, 4, None, 9)
    assert conv_dgrad(u, w, (7, 4, 11, None), spec).type.shape == (7, 4, 11, 9)
    assert conv_wgrad(x, u, (None, None, 3, 3), spec).type.shape == (None, 2, 3, 3)
    assert conv_wgrad(x, u, w.shape, spec).type.shape == (6, 2, 3, 3)
    assert conv_transpose(u, w, make_spec(2, 1, 2, groups=2), output_padding=(0, 1)).type.shape == (7, 4, None, 18)


def test_a_symbolic_shape_decides_the_size() -> None:
    u, w = variable("u", 1, 1, 3), variable("w", 1, 1, 3)
    size = Variable(TensorType("int64", ()), "size")
    result = conv_dgrad(u, w, (None, None, size), make_spec(1, stride=2))
    values = {u: np.ones((1, 1, 3)), w: np.arange(1.0, 4).reshape(1, 1, 3)}
    np.testing.assert_array_equal(evaluate([result], {**values, size: np.int64(7)})[0][0, 0], [1, 2, 4, 2, 4, 2, 3])
    np.testing.assert_array_equal(evaluate([result], {**values, size: np.int64(8)})[0][0, 0], [1, 2, 4, 2, 4, 2, 3, 0])
    with pytest.raises(ShapeError, match=re.escape("give a response (1, 1, 4), but the output gradient has the shape")):
        evaluate([result], {**values, size: np.int64(9)})


def test_shapes_are_bound_with_values() -> None:
    op = Conv(Kind.DGRAD, make_spec(1, stride=2), None, (None, None, 8))
    assert op.value_inputs == (2,)
    assert Conv(Kind.FPROP, make_spec(1)).value_inputs == ()
    types = [TensorType("float32", (1, 4, 3)), TensorType("float32", (4, 2, 3)), TensorType("int64", (3,))]
    assert op.infer_bound(types, {2: np.array([1, 2, 8])})[0].shape == (1, 2, 8)
    with pytest.raises(ShapeError, match="asked for in a shape that its inputs do not give"):
        op.infer_bound(types, {2: np.array([1, 2, 7])})
    with pytest.raises(ShapeError, match="asked for in a shape that its inputs do not give"):
        op.infer_bound(types, {2: np.array([5, 2, 8])})


def test_padding_is_not_multiplied_with() -> None:
    x, w = np.ones((1, 1, 2)), np.array([np.inf, 1.0, np.nan]).reshape(1, 1, 3)
    (y,) = evaluate([conv_fprop(constant(x[:, :, :1]), constant(w), make_spec(1, 1))])
    assert y.item() == 1.0


ERRORS = [
    (lambda: conv_fprop(variable("x", 1, 2, 5, dtype="int32"), variable("w", 1, 2, 5), make_spec(1)), GraphTypeError,
     "a convolution takes float tensors\n  found: x: int32[1,2,5]\n  do: cast it: x.astype('float32')"),
    (lambda: apply_op(Conv(Kind.FPROP, make_spec(1)), variable("x", 1, 2, 5), variable("w", 1, 2, 5, dtype="float32")),
     GraphTypeError, "two tensors of one float dtype\n  found: float64[1,2,5] and float32[1,2,5]"),
    (lambda: conv_fprop(variable("x", 1, 2, 5), variable("w", 1, 2, 5), make_spec(1, compute_dtype="float32")),
     GraphTypeError, "products of float64 cannot be summed in float32"),
    (lambda: conv_fprop(variable("x", 1, 2, 5, 5), variable("w", 1, 2, 5), make_spec(2)), GraphTypeError,
     "the filters of a 2-D convolution must have 4 axes"),
    (lambda: conv_dgrad(variable("u", 1, 3, 5), variable("w", 4, 2, 3), None, make_spec(1)), ShapeError,
     "the output gradient has 3 channels for 4 filters"),
    (lambda: conv_dgrad(variable("u", 1, 4, 5), variable("w", 4, 2, 3), None, make_spec(1, stride=2)), ShapeError,
     "the size of the result along axis 2 is not told by the inputs of a dgrad"),
    (lambda: conv_dgrad(variable("u", 1, 4, 5), variable("w", 4, 2, 3), (1, 2), make_spec(1)), ShapeError,
     "the shape of the result of a 1-D dgrad has 3 sizes\n  found: (1, 2)"),
    (lambda: conv_dgrad(variable("u", 1, 4, 5), variable("w", 4, 2, 3), (1, 3, 7), make_spec(1)), ShapeError,
     "asked for (1, 3, 7), inputs give (1, 2, 7)"),
    (lambda: conv_wgrad(variable("x", 1, 2, 9), variable("u", 1, 4, 4), None, make_spec(1, stride=2)), ShapeError,
     "along axis 2 is not told by the inputs of a wgrad"),
    (lambda: conv_wgrad(variable("x", 1, 2, 9), variable("u", 3, 4, 7), (4, 2, 3), make_spec(1)), ShapeError,
     "give a response (1, 4, 7), but the output gradient has the shape (3, 4, 7)"),
    (lambda: conv_wgrad(variable("x", 1, 3, 9), variable("u", 1, 4, 7), None, make_spec(1, groups=2)), ShapeError,
     "the image's 3 channels do not divide into 2 groups"),
]


@pytest.mark.parametrize(("build", "error", "text"), ERRORS)
def test_wrong_uses_are_told(build: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=re.escape(text)):
        build()
