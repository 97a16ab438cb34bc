"""Gradients of elementwise operations: against central differences, at kinks, through masks and through broadcasting."""
from __future__ import annotations

import numpy as np
import pytest
from support import check_gradient, evaluate, variable_for

from symconv.errors import DisconnectedInputError
from symconv.graph import Constant, TensorType, Variable, toposort
from symconv.graph.gradient import grad
from symconv.ops import elementwise as e
from symconv.ops.scalar import SCALAR_OPS
from symconv.ops.stop_gradient import disconnected_grad
from symconv.ops.unbroadcast import SumTo, broadcast_like, unbroadcast

RNG = np.random.default_rng(2)
ANY = RNG.normal(size=(2, 3)) * 2
POSITIVE = RNG.uniform(0.3, 3, size=(2, 3))
UNIT = RNG.uniform(-0.9, 0.9, size=(2, 3))
UNARY = {
    "neg": ANY, "abs": ANY, "square": ANY, "exp": ANY, "exp2": ANY, "expm1": ANY, "log": POSITIVE, "log2": POSITIVE,
    "log10": POSITIVE, "log1p": POSITIVE, "sqrt": POSITIVE, "rsqrt": POSITIVE, "reciprocal": POSITIVE, "sin": ANY,
    "cos": ANY, "tan": UNIT, "arcsin": UNIT, "arccos": UNIT, "arctan": ANY, "sinh": ANY, "cosh": ANY, "tanh": ANY,
    "erf": ANY, "sigmoid": ANY, "softplus": ANY, "relu": ANY,
}
BINARY = {
    "add": (ANY, POSITIVE), "sub": (ANY, POSITIVE), "mul": (ANY, POSITIVE), "masked_mul": (ANY, POSITIVE),
    "true_div": (ANY, POSITIVE), "mod": (ANY + 0.05, POSITIVE), "pow": (POSITIVE, ANY), "maximum": (ANY, UNIT),
    "minimum": (ANY, UNIT), "arctan2": (ANY, POSITIVE), "logaddexp": (ANY, UNIT),
}
WITHOUT = {"floor_div", "eq", "ne", "lt", "le", "gt", "ge", "and_", "or_", "xor", "invert", "sign", "floor", "ceil", "trunc",
           "round", "isnan", "isinf", "isfinite"}


def gradient_at(build, *arrays, wrt=0):
    """Value of the gradient of the sum of `build` at arrays."""
    inputs = [variable_for(np.asarray(array)) for array in arrays]
    bindings = dict(zip(inputs, map(np.asarray, arrays), strict=True))
    return evaluate([grad(build(*inputs).sum(), inputs[wrt])], bindings)[0]


@pytest.mark.parametrize("name", UNARY)
def test_unary(name):
    check_gradient(getattr(e, name), UNARY[name], order=2, rtol=1e-4)


@pytest.mark.parametrize("name", BINARY)
def test_binary(name):
    check_gradient(getattr(e, name), *BINARY[name], order=2, rtol=1e-4, atol=1e-6)


def test_every_operation_has_a_gradient_or_is_known_to_have_none():
    assert set(UNARY) | set(BINARY) | WITHOUT | {"where", "clip", "cast"} == set(SCALAR_OPS)


@pytest.mark.parametrize("name", ["sign", "floor", "ceil", "trunc", "round", "isnan", "isinf", "isfinite"])
def test_steps_are_disconnected(name):
    x = Variable(TensorType("float64", (2,)))
    cost = e.cast(getattr(e, name)(x), "float64").sum()
    with pytest.raises(DisconnectedInputError):
        grad(cost, x)


def test_ternary():
    condition = RNG.random((2, 3)) < 0.5
    check_gradient(lambda a, b: e.where(condition, a, b), ANY, POSITIVE, order=2)
    check_gradient(e.clip, ANY, np.array(-0.7), np.array(0.9))
    check_gradient(lambda x: e.cast(e.cast(x, "float32"), "float64"), ANY, rtol=0.2, atol=0.2)


@pytest.mark.parametrize("shapes", [((2, 3), (3,)), ((3,), (2, 3)), ((2, 1), (1, 3)), ((), (2, 2)), ((1,), (3, 2)),
                                    ((1, 1), (1, 1)), ((2, 1, 3), (4, 1)), ((0, 3), (3,)), ((0, 3), (1, 1))])
@pytest.mark.parametrize("name", ["mul", "pow", "maximum"])
def test_gradients_sum_over_what_was_broadcast(name, shapes):
    a, b = (RNG.uniform(0.5, 2, size=shape) for shape in shapes)
    check_gradient(getattr(e, name), a, b, order=2, rtol=1e-4)


def test_broadcasting_of_where_and_clip():
    condition = np.array([[True], [False]])
    check_gradient(lambda a, b: e.where(condition, a, b), RNG.normal(size=3), RNG.normal(size=(1, 1)), order=2)
    check_gradient(e.clip, RNG.normal(size=(2, 3)), np.array([[-0.3], [-0.2]]), np.array([0.4, 0.5, 0.6]))


def test_size_one_found_at_run_time():
    a, b = Variable(TensorType("float64", (None, None))), Variable(TensorType("float64", (None,)))
    gradients = grad((a * b).sum(), [a, b])
    assert [each.type.shape for each in gradients] == [(None, None), (None,)]
    for shape_a, shape_b in (((1, 1), (3,)), ((2, 3), (1,)), ((2, 1), (4,)), ((2, 3), (3,))):
        x, y = RNG.normal(size=shape_a), RNG.normal(size=shape_b)
        found = evaluate(gradients, {a: x, b: y})
        whole = np.broadcast_shapes(shape_a, shape_b)
        np.testing.assert_allclose(found[0], np.broadcast_to(y, whole).sum(
            axis=tuple(axis for axis in range(2) if shape_a[axis] != whole[axis]), keepdims=True))
        wanted = np.broadcast_to(x, whole).sum(axis=0)
        np.testing.assert_allclose(found[1], wanted.sum(keepdims=True) if shape_b == (1,) else wanted)


def test_nothing_is_summed_where_nothing_can_be_broadcast():
    a, row = Variable(TensorType("float32", (None, None))), Variable(TensorType("float32", (1, None)))
    gradient = grad((e.exp(a * a * 2.0) * e.sigmoid(a) + a + row.sum()).sum(), a)
    assert not [node for node in toposort([gradient]) if isinstance(node.op, SumTo)]


def test_sum_to_lowers_to_a_plain_sum():
    types = [TensorType("float32", (2, 3)), TensorType("float32", (1, 3))]
    assert str(SumTo().lower(types)) == "sum{axes=(0,), keepdims}"
    assert SumTo().lower([types[0], types[0]]) is None
    g, like = Variable(types[0].with_shape((None, 3))), Variable(types[0].with_shape((None, None)))
    assert unbroadcast(g, like).type.shape == (None, None)
    assert broadcast_like(Variable(types[1]), Variable(types[0])).type.shape == (2, 3)


def test_kinks():
    x = np.array([-1.0, 0.0, 2.0])
    np.testing.assert_array_equal(gradient_at(e.relu, x), [0, 0, 1])
    np.testing.assert_array_equal(gradient_at(e.abs, x), [-1, 0, 1])
    np.testing.assert_array_equal(gradient_at(lambda v: e.clip(v, -1, 2), np.array([-2.0, -1, 0, 2, 3])), [0, 1, 1, 1, 0])
    for extremum in (e.maximum, e.minimum):
        both = [gradient_at(extremum, np.array([1.0, 5, np.nan]), np.array([1.0, 4, 3]), wrt=wrt) for wrt in (0, 1)]
        np.testing.assert_array_equal(both[0] + both[1], [1, 1, 1])
        assert both[0][0] == 1
        assert both[0][2] == 1


def test_powers_at_zero():
    zeros, exponents = np.zeros(4), np.array([0.0, 1, 2, 3])
    np.testing.assert_array_equal(gradient_at(e.pow, zeros, exponents), [0, 1, 0, 0])
    np.testing.assert_array_equal(gradient_at(e.pow, zeros, exponents, wrt=1), [0, 0, 0, 0])
    np.testing.assert_array_equal(gradient_at(lambda x: x**2, np.array([-3.0, 0])), [-6, 0])
    np.testing.assert_array_equal(gradient_at(lambda x: x**0, np.array([-3.0, 0])), [0, 0])
    check_gradient(lambda x: x**3, np.array([-2.0, 0, 1]), order=2)
    check_gradient(lambda x: x**np.array([2.0, 1, 0.5]), np.array([-2.0, 0, 1]))


def test_logaddexp_of_infinities():
    ends = np.array([-np.inf, np.inf, -np.inf, 0])
    found = gradient_at(e.logaddexp, ends, np.array([-np.inf, np.inf, 1, -np.inf]))
    np.testing.assert_array_equal(found, [0.5, 0.5, 0, 1])


BRANCHES = [e.log, e.sqrt, e.reciprocal, e.rsqrt, lambda x: x * e.log(x), lambda x: 1 / x, lambda x: x**-1.5,
            lambda x: e.exp(1 / x), lambda x: e.log(e.sqrt(x)), lambda x: e.arctan2(x, x), lambda x: e.sqrt(x) * e.log(x),
            lambda x: e.square(x / x), lambda x: (x * e.log(x)).sum(keepdims=True), lambda x: e.arcsin(x + 1)]


@pytest.mark.parametrize("branch", BRANCHES)
def test_the_branch_not_taken_adds_exactly_zero(branch):
    point = np.array([0.0])
    assert gradient_at(lambda x: e.where(x > 0, branch(x), 3 * x), point) == [3]
    assert gradient_at(lambda x: e.where(x <= 0, 3 * x, branch(x)), point) == [3]


def test_masks_survive_a_second_derivative_and_nan():
    x = Variable(TensorType("float64", (3,)))
    first = grad(e.where(x > 0, x * e.log(x), 0).sum(), x)
    second = grad(first.sum(), x)
    point = np.array([0.0, 1.0, 2.0])
    np.testing.assert_allclose(evaluate([first, second], {x: point}), [[0, 1, 1 + np.log(2)], [0, 1, 0.5]])
    np.testing.assert_array_equal(gradient_at(lambda v: e.where(e.isnan(v), 0, v * v), np.array([np.nan, 3])), [0, 6])


def test_a_zero_cotangent_without_a_mask_keeps_its_derivative():
    x, u = Variable(TensorType("float64", (2,))), Variable(TensorType("float64", (2,)))
    by_x = grad((e.log(x) * u).sum(), x)
    by_u = grad(by_x.sum(), u)
    np.testing.assert_allclose(evaluate([by_u], {x: np.array([2.0, 4]), u: np.zeros(2)})[0], [0.5, 0.25])
    masked = grad((e.where(x > 1, e.log(x), 0) * u).sum(), x)
    np.testing.assert_allclose(evaluate([grad(masked.sum(), u)], {x: np.array([2.0, 0]), u: np.zeros(2)})[0], [0.5, 0])


def test_stop_gradient():
    x = Variable(TensorType("float64", (2,)))
    np.testing.assert_array_equal(gradient_at(lambda v: v * disconnected_grad(v), np.array([2.0, 3])), [2, 3])
    with pytest.raises(DisconnectedInputError):
        grad(disconnected_grad(x).sum(), x)


def test_plain_expressions_have_plain_gradients():
    x = Variable(TensorType("float32", (3,)))
    names = {node.op.name for node in toposort([grad((e.relu(x) * e.exp(x) / (x + 1)).sum(), x)])}
    assert "masked_mul" not in names


def test_integers_and_comparisons_have_no_gradient():
    x, n = Variable(TensorType("float32", (2,))), Variable(TensorType("int32", (2,)))
    assert grad((x * n).sum(), x).dtype == "float32"
    with pytest.raises(DisconnectedInputError):
        grad((x * n).sum(), n)
    with pytest.raises(DisconnectedInputError):
        grad(e.cast(x > 0, "float32").sum(), x)


def test_gradient_dtypes_follow_the_inputs():
    x, y = Variable(TensorType("float32", (2,))), Variable(TensorType("float64", (2,)))
    assert [each.dtype for each in grad((x * y).sum(), [x, y])] == ["float32", "float64"]
    half = Variable(TensorType("float16", (2,)))
    assert grad(e.exp(half).sum(), half).dtype == "float16"


def test_a_long_chain_stays_quick_and_iterative():
    x = Variable(TensorType("float64", ()))
    value = e.where(x > 0, x, 0)
    for _ in range(3000):
        value = e.sin(value)
    assert np.isfinite(evaluate([grad(value, x)], {x: np.float64(0.5)})[0])


def test_a_constant_exponent_needs_no_guard():
    x = Variable(TensorType("float64", (2,)))
    names = [node.op.name for node in toposort([grad((x ** Constant(np.float64(3))).sum(), x)])]
    assert "where" not in names
