"""The gradient driver: what is asked for, what is disconnected, what is known."""
from __future__ import annotations

import numpy as np
import pytest

import symconv as sc
import symconv.tensor as T
from symconv.errors import ArgumentError, DisconnectedInputError, GradientError, GraphTypeError


def test_the_gradient_of_a_polynomial():
    x = T.scalar("x", dtype="float64")
    assert sc.grad(3 * x**3 + 2 * x, x).eval({x: 2.0}) == pytest.approx(38)


def test_the_result_has_the_form_of_wrt():
    x, y = T.vectors("x", "y")
    cost = (x * y).sum()
    assert isinstance(sc.grad(cost, [x, y]), list)
    assert isinstance(sc.grad(cost, (x, y)), tuple)
    assert sc.grad(cost, x).type.ndim == 1


def test_several_paths_add_up():
    x = T.vector("x", dtype="float64")
    h = T.exp(x)
    cost = (h * h + h).sum()
    found = sc.grad(cost, x).eval({x: np.array([0.3, -1.0])})
    expected = 2 * np.exp(2 * np.array([0.3, -1.0])) + np.exp([0.3, -1.0])
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_the_gradient_of_an_inner_variable():
    x = T.vector("x", dtype="float64")
    h = T.tanh(x)
    np.testing.assert_allclose(sc.grad((h**2).sum(), h).eval({x: np.array([0.5])}), 2 * np.tanh([0.5]), rtol=1e-12)


def test_a_disconnected_variable_is_an_error_that_says_which_and_why():
    x, y = T.vector("x"), T.vector("unrelated")
    with pytest.raises(DisconnectedInputError, match=r"does not depend on 'unrelated'.*(\n.*)*no differentiable path"):
        sc.grad(x.sum(), y)


def test_disconnected_inputs_may_be_ignored_or_warned_of():
    x, y = T.vector("x"), T.vector("y")
    zeros = sc.grad(x.sum(), y, disconnected_inputs="ignore")
    np.testing.assert_array_equal(zeros.eval({y: np.float32([1, 2])}), [0, 0])
    assert sc.grad(x.sum(), y, disconnected_inputs="ignore", return_disconnected="none") is None
    with pytest.warns(UserWarning, match="does not depend on 'y'"):
        sc.grad(x.sum(), y, disconnected_inputs="warn")


def test_an_integer_has_no_gradient():
    n = T.lvector("n")
    with pytest.raises(DisconnectedInputError, match="integer or bool"):
        sc.grad((n * 1.5).sum(), n)


def test_no_gradient_flows_through_what_is_considered_constant():
    x = T.vector("x", dtype="float64")
    h = x * 3
    found = sc.grad((h * x).sum(), x, consider_constant=[h]).eval({x: np.array([2.0])})
    assert found == pytest.approx(6.0)


def test_known_grads_replace_the_cost():
    x = T.vector("x", dtype="float64")
    h = x**2
    found = sc.grad(None, x, known_grads={h: np.array([10.0, 100.0])}).eval({x: np.array([1.0, 2.0])})
    np.testing.assert_allclose(found, [20.0, 400.0])


@pytest.mark.parametrize(("cost", "error", "text"), [
    (lambda: T.vector("v"), GradientError, "rank 0"),
    (lambda: T.lscalar("n"), GradientError, "is a float"),
    (lambda: 3.0, GraphTypeError, "symbolic variable"),
])
def test_a_cost_of_the_wrong_kind(cost, error, text):
    with pytest.raises(error, match=text):
        sc.grad(cost(), T.scalar())


def test_a_wrong_choice_is_named():
    x = T.scalar("x")
    with pytest.raises(ArgumentError, match="disconnected_inputs is one of raise, warn, ignore"):
        sc.grad(x, x, disconnected_inputs="sometimes")


def test_lop_and_rop_are_the_two_products_with_the_jacobian():
    generator = np.random.default_rng(0)
    matrix, point = generator.normal(size=(3, 4)), generator.normal(size=4)
    left, right = generator.normal(size=3), generator.normal(size=4)
    x = T.vector("x", dtype="float64")
    f = T.tanh(T.dot(T.constant(matrix), x))
    jacobian = (1 - np.tanh(matrix @ point) ** 2)[:, None] * matrix
    np.testing.assert_allclose(sc.Lop(f, x, T.constant(left)).eval({x: point}), left @ jacobian, rtol=1e-10)
    np.testing.assert_allclose(sc.Rop(f, x, T.constant(right)).eval({x: point}), jacobian @ right, rtol=1e-10)


def test_second_derivatives():
    x = T.scalar("x", dtype="float64")
    second = sc.grad(sc.grad(T.sin(x) * x, x), x)
    assert second.eval({x: 0.7}) == pytest.approx(2 * np.cos(0.7) - 0.7 * np.sin(0.7))


def test_gradient_controls():
    x = T.vector("x", dtype="float64")
    point = {x: np.array([3.0, -4.0])}
    np.testing.assert_allclose(sc.grad((T.grad_clip(x, -1, 1) ** 2).sum(), x).eval(point), [1, -1])
    np.testing.assert_allclose(sc.grad((T.grad_scale(x, 0.5) ** 2).sum(), x).eval(point), [3, -4])
    np.testing.assert_allclose(sc.grad((T.zero_grad(x) * x).sum(), x).eval(point), [3, -4])
    with pytest.raises(DisconnectedInputError):
        sc.grad(T.disconnected_grad(x).sum(), x)


def test_verify_grad_accepts_right_and_names_wrong_gradients():
    from dataclasses import dataclass

    from symconv.graph import Op, apply_op

    sc.verify_grad(lambda a, b: T.exp(a) * b, [np.array([0.2, 0.4]), np.array([1.0, 3.0])])

    @dataclass(frozen=True, slots=True)
    class Wrong(Op):
        def infer(self, x):
            return (x,)

        def grad(self, apply, cotangents):
            return (cotangents[0] * 2,)

        def reference(self, x):
            return (x * 3,)

    with pytest.raises(GradientError, match=r"argument 0 is wrong at \(0,\)"):
        sc.verify_grad(lambda a: apply_op(Wrong(), a), [np.array([1.0, 2.0])])
