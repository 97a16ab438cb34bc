"""Jacobians and Hessians of every differentiable op, against central differences and written-out derivatives, and JAX's."""
from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
import pytest
from support import evaluate, variable_for
from test_every_gradient import ARGUMENTS, CASES

import symconv as sc
import symconv.tensor as T
from symconv.errors import ArgumentError, DisconnectedInputError, GradientError, GraphTypeError
from symconv.graph import Op, Variable, apply_op, toposort
from symconv.ops import batching, elementwise
from symconv.ops.convolution import Conv
from symconv.ops.spec import Kind, make_spec
from symconv.tensor import nnet


def numerical_jacobian(output, inputs, arrays, which, step=1e-6):
    """Central differences of every element of an expression by every element of one input."""
    columns = []
    for place in np.ndindex(*arrays[which].shape):
        ends = []
        for sign in (1, -1):
            moved = [array.copy() for array in arrays]
            moved[which][place] += sign * step
            ends.append(evaluate([output], dict(zip(inputs, moved, strict=True)))[0])
        columns.append((ends[0] - ends[1]) / (2 * step))
    return np.stack(columns, -1).reshape(*columns[0].shape, *arrays[which].shape)


def check(build, arrays, known):
    inputs = [variable_for(array, known) for array in arrays]
    output = build(*inputs)
    floats = [place for place, array in enumerate(arrays) if array.dtype == np.float64]
    found = sc.jacobian(output, [inputs[place] for place in floats], disconnected_inputs="ignore")
    for place, value in zip(floats, evaluate(found, dict(zip(inputs, arrays, strict=True))), strict=True):
        wanted = numerical_jacobian(output, inputs, arrays, place)
        assert value.shape == wanted.shape
        np.testing.assert_allclose(value, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("known", [True, False], ids=["static", "symbolic"])
@pytest.mark.parametrize("name", CASES)
def test_jacobian_of_every_op(name, known):
    check(*CASES[name], known)


@pytest.mark.parametrize("name", [name for name in ARGUMENTS if name not in ("where", "cast")])
def test_jacobian_of_every_scalar_function(name):
    check(getattr(elementwise, name), ARGUMENTS[name], known=False)


def check_batches(build, arrays, known):
    """For a batch of each float input: the stacked results, from a graph in which no op is applied one by one."""
    inputs = [variable_for(array, known) for array in arrays]
    output = build(*inputs)
    for place, array in enumerate(arrays):
        if array.dtype != np.float64:
            continue
        stack = np.stack([array, array * 0.75, array * 1.0625])
        values = variable_for(stack, known)
        (found,) = batching.batched([output], inputs[place], values, 3 if known else values.shape[0])
        others = {each: value for each, value in zip(inputs, arrays, strict=True) if each is not inputs[place]}
        (got,) = evaluate([found], {values: stack, **others})
        rows = [evaluate([output], {inputs[place]: row, **others})[0] for row in stack]
        np.testing.assert_allclose(got, np.stack(rows), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("known", [True, False], ids=["static", "symbolic"])
@pytest.mark.parametrize("name", [name for name in CASES if name not in ("Print", "Assert") and "Conv" not in name])
def test_every_op_of_a_batch(name, known, monkeypatch):
    monkeypatch.setattr(batching, "UNROLLED_AT_MOST", 0)
    check_batches(*CASES[name], known)


@pytest.mark.parametrize("name", [name for name in ARGUMENTS if name not in ("where", "cast")])
def test_every_scalar_function_of_a_batch(name):
    check_batches(getattr(elementwise, name), ARGUMENTS[name], known=False)


@pytest.mark.parametrize("known", [True, False], ids=["static", "symbolic"])
def test_batches_of_positions_and_of_the_second_of_two(known):
    rng = np.random.default_rng(4)
    x, y = rng.normal(size=(3, 4, 2)), rng.normal(size=(4, 3))
    check_batches(lambda x: T.argmax(x, axis=1) + T.argmin(x[..., 0]), [x], known)
    check_batches(lambda x, y: T.tensordot(x, y, ([0, 1], [1, 0])), [x, y], known)
    check_batches(lambda x: T.inc_subtensor(T.dot(x, x.T)[T.argsort(x[:, 0]), T.argsort(x[:, 1])], x[:, 2]), [y], known)
    check_batches(lambda x: T.disconnected_grad(x) * x.sum(), [y], known)


@pytest.mark.parametrize("known", [True, False], ids=["static", "symbolic"])
@pytest.mark.parametrize(("kind", "place", "groups"), list(product(Kind, (0, 1), (1, 2))))
def test_convolutions_of_a_batch_of_either_tensor(kind, place, groups, known):
    """One larger convolution for a batch of one tensor is as many convolutions, and no op is applied one by one."""
    rng = np.random.default_rng(0)
    shapes = {"x": (2, 4, 6, 5), "w": (6, 4 // groups, 3, 2), "y": (2, 6, 3, 2)}
    spec = make_spec(2, ((1, 0), (0, 1)), stride=2, dilation=(1, 2), groups=groups)
    arrays = [rng.normal(size=shapes[role]) for role in kind.reads]
    inputs = [variable_for(array, known) for array in arrays]
    shape = [] if kind is Kind.FPROP else [T.constant(np.array(shapes[kind.produces]))]
    result = apply_op(Conv(kind, spec), *inputs, *shape)
    stack = rng.normal(size=(3, *arrays[place].shape))
    values = variable_for(stack, known)
    (found,) = batching.batched([result], inputs[place], values, values.shape[0] if not known else 3)
    assert sum(isinstance(node.op, Conv) for node in toposort([found])) == 1
    (got,) = evaluate([found], {values: stack, inputs[1 - place]: arrays[1 - place]})
    for row, array in zip(got, stack, strict=True):
        bindings = {inputs[place]: array, inputs[1 - place]: arrays[1 - place]}
        np.testing.assert_allclose(row, evaluate([result], bindings)[0], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("shape", [(None, None), (3, 4)])
def test_hessian_of_a_matrix(shape):
    x = T.tensor(dtype="float64", shape=shape)
    point = np.random.default_rng(1).normal(size=(3, 4))
    found = sc.compile([x], sc.hessian((T.tanh(x).sum(axis=1) ** 2).sum(), x))(point)
    tanh = np.tanh(point)
    slope, bend = 1 - tanh ** 2, -2 * tanh * (1 - tanh ** 2)
    wanted = np.zeros((3, 4, 3, 4))
    for i, j, k in np.ndindex(3, 4, 4):
        wanted[i, j, i, k] = 2 * slope[i, j] * slope[i, k] + (2 * tanh[i].sum() * bend[i, j] if j == k else 0)
    np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-12)


def small_network():
    """The loss of a convolutional network, its variables and their values."""
    rng = np.random.default_rng(2)
    values = [rng.normal(size=shape) for shape in ((2, 1, 6, 6), (3, 1, 3, 3), (3,), (12, 3))]
    x, w, b, v = (variable_for(value, False) for value in values)
    h = nnet.max_pool_2d(T.tanh(nnet.conv2d(x, w, filter_flip=False) + b.dimshuffle("x", 0, "x", "x")), 2)
    logits = T.dot(h.flatten(2), v)
    return nnet.softmax_cross_entropy(logits, np.array([2, 0])).mean(), logits, [x, w, b, v], values


def test_hessians_of_a_network_are_central_differences_of_its_gradient():
    loss, _, variables, values = small_network()
    for place, found in zip((1, 2, 3), sc.compile(variables, sc.hessian(loss, variables[1:]))(*values), strict=True):
        gradient = sc.grad(loss, variables[place])
        np.testing.assert_allclose(found, numerical_jacobian(gradient, variables, values, place), rtol=1e-5, atol=1e-7)


def test_products_with_a_hessian_are_those_with_the_whole():
    loss, _, variables, values = small_network()
    rng = np.random.default_rng(3)
    wrt = variables[2:]
    vectors = [rng.normal(size=value.shape) for value in values[2:]]
    found = sc.compile(variables, sc.hessian_vector_product(loss, wrt, vectors))(*values)
    gradients = sc.grad(loss, wrt)
    for gradient, result in zip(gradients, found, strict=True):
        rows = [numerical_jacobian(gradient, variables, values, place) for place in (2, 3)]
        wanted = sum(np.tensordot(row, vector, vector.ndim) for row, vector in zip(rows, vectors, strict=True))
        np.testing.assert_allclose(result, wanted, rtol=1e-5, atol=1e-7)


def test_jacobian_of_a_network_as_jax_computes_it():
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    import jax.numpy as jnp

    def logits(x, w, b, v):
        h = jnp.tanh(jax.lax.conv(x, w, (1, 1), "VALID") + b[None, :, None, None])
        h = h.reshape(h.shape[0], h.shape[1], 2, 2, 2, 2).max((3, 5))
        return h.reshape(h.shape[0], -1) @ v

    def loss(*arguments):
        return -jax.nn.log_softmax(logits(*arguments))[jnp.arange(2), jnp.array([2, 0])].mean()

    cost, output, variables, values = small_network()
    for found, wanted in zip(sc.compile(variables, sc.jacobian(output, variables))(*values),
                             jax.jacrev(logits, (0, 1, 2, 3))(*values), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-12)
    hessian = sc.compile(variables, sc.hessian(cost, variables[1]))(*values)
    np.testing.assert_allclose(hessian, jax.hessian(loss, 1)(*values), rtol=1e-8, atol=1e-12)


def test_the_graph_does_not_grow_with_the_expression():
    sizes = [len(toposort([sc.jacobian(T.tanh(x @ x), x)])) for x in (T.tensor(dtype="float64", shape=(n, n)) for n in (2, 30))]
    assert sizes[0] == sizes[1]


def test_empty_expressions_and_batches():
    x = T.tensor(dtype="float64", shape=(None, 3))
    found = sc.compile([x], sc.jacobian((x ** 2).sum(axis=1), x))(np.zeros((0, 3)))
    assert found.shape == (0, 0, 3)


def test_what_does_not_depend():
    x, y = T.dvector("x"), T.dmatrix("y")
    with pytest.raises(DisconnectedInputError, match=r"'y' \(float64\[\?,\?\]\)"):
        sc.jacobian(x * 2, [x, y])
    by_x, by_y = evaluate(sc.jacobian(x * 2, (x, y), disconnected_inputs="ignore"), {x: np.ones(2), y: np.ones((3, 1))})
    np.testing.assert_array_equal(by_x, 2 * np.eye(2))
    np.testing.assert_array_equal(by_y, np.zeros((2, 3, 1)))
    np.testing.assert_array_equal(sc.hessian((3 * x).sum(), x).eval({x: np.ones(2)}), np.zeros((2, 2)))
    np.testing.assert_array_equal(sc.jacobian(x, x).eval({x: np.ones(2)}), np.eye(2))
    square = x ** 2
    np.testing.assert_array_equal(sc.jacobian(square * x, x, consider_constant=[square]).eval({x: np.array([1.0, 2.0])}),
                                  np.diag([1.0, 4.0]))


def test_mistakes():
    x = T.dvector("x")
    with pytest.raises(GradientError, match="the expression of a jacobian is a float"):
        sc.jacobian(x > 0, x)
    with pytest.raises(GraphTypeError, match="a symbolic variable"):
        sc.jacobian(np.ones(2), x)
    with pytest.raises(GradientError, match="a scalar"):
        sc.hessian(x * 2, x)
    with pytest.raises(ArgumentError, match="one vector for each variable"):
        sc.hessian_vector_product((x ** 2).sum(), [x], [np.ones(2)] * 2)
    with pytest.raises(ArgumentError, match=r"the vector for 'x'"):
        sc.hessian_vector_product((x ** 2).sum(), x, np.ones((2, 2)))


@dataclass(frozen=True, slots=True)
class _Doubled(Op):
    """An op of a user's, which says nothing about batches: twice a vector."""

    def infer(self, x):
        if x.ndim != 1:
            raise GraphTypeError("a vector is wanted")
        return (x,)

    def grad(self, apply, cotangents):
        return (apply_op(self, cotangents[0]),)

    def reference(self, x):
        return (2 * x,)


def test_ops_without_a_rule_are_applied_one_by_one():
    x = Variable(sc.TensorType("float64", (3,)))
    found = sc.jacobian(apply_op(_Doubled(), x ** 2), x)
    assert sum(isinstance(node.op, _Doubled) for node in toposort([found])) == 3
    np.testing.assert_array_equal(evaluate([found], {x: np.array([1.0, 2.0, 3.0])})[0], np.diag([4.0, 8.0, 12.0]))
    for large in (T.dvector(), T.tensor(dtype="float64", shape=(batching.UNROLLED_AT_MOST + 1,))):
        with pytest.raises(GradientError, match="one by one"):
            sc.jacobian(apply_op(_Doubled(), large), large)
    empty = T.tensor(dtype="float64", shape=(0,))
    assert evaluate([sc.jacobian(apply_op(_Doubled(), empty), empty)], {empty: np.zeros(0)})[0].shape == (0, 0)
