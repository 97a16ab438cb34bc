"""Shared variables with one value, copies of functions with other state, and leaves that are cloned."""
from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import symconv as sc
import symconv.tensor as T
from symconv.errors import ArgumentError, GraphTypeError


def test_a_clone_has_the_same_value_and_an_update_of_its_own():
    """As layers of batch normalisation keep running means: training moves them, prediction does not."""
    mean, x = sc.shared(np.zeros(2), "mean"), T.dvector("x")
    running = sc.clone(mean, share_inputs=False)
    assert running is not mean
    assert running.name == "mean"
    running.default_update = 0.5 * running + 0.5 * x
    train = sc.compile([x], x + 0 * running)
    predict = sc.compile([x], x - mean)
    train([2.0, 4.0])
    np.testing.assert_array_equal(mean.get_value(), [1.0, 2.0])
    np.testing.assert_array_equal(predict([0.0, 0.0]), [-1.0, -2.0])
    np.testing.assert_array_equal(mean.get_value(), [1.0, 2.0])


@pytest.mark.parametrize("shape", [(3,), (200, 300)])
def test_both_in_one_function_read_the_old_value(shape):
    state = sc.shared(np.ones(shape), "state")
    other, x = state.clone(), T.dvector("x")
    late = T.exp(T.sin(other) * x.sum())
    step = sc.compile([x], [state + 1, late], updates=[(other, 2 * other + state)])
    for old in (1.0, 3.0, 9.0):
        first, second = step(np.array([0.25, 0.25]))
        np.testing.assert_array_equal(first, np.full(shape, old + 1))
        np.testing.assert_allclose(second, np.exp(np.sin(np.full(shape, old)) * 0.5), rtol=1e-12)
        np.testing.assert_array_equal(state.get_value(), np.full(shape, 3 * old))
    assert len(step.shared_variables) == 1


def test_clones_in_givens_and_two_updates_of_one_value():
    state, x = sc.shared(np.ones(2), "state"), T.dvector("x")
    other = state.clone()
    step = sc.compile([], x * 2, updates=[(state, state + 1)], givens={x: other * 10})
    np.testing.assert_array_equal(step(), [20.0, 20.0])
    np.testing.assert_array_equal(step(), [40.0, 40.0])
    with pytest.raises(ArgumentError, match=r"'state' is updated twice"):
        sc.compile([], [], updates=[(state, state + 1), (other, other + 1)])


@pytest.mark.parametrize("again", [copy.deepcopy, lambda each: pickle.loads(pickle.dumps(each))])
def test_clones_stay_together_when_pickled(again):
    state = sc.shared(np.ones(2), "state")
    one, two = again((state, state.clone()))
    one.set_value(np.full(2, 5.0))
    np.testing.assert_array_equal(two.get_value(), [5.0, 5.0])
    np.testing.assert_array_equal(state.get_value(), [1.0, 1.0])


def test_cloning_leaves():
    x, y = T.vector("x"), T.lvector("y")
    z = sc.clone(x * 2 + 1, share_inputs=False)
    (leaf,) = [each for each in sc.graph.leaves([z]) if each.name == "x"]
    assert leaf is not x
    assert z.eval({leaf: np.float32([1, 2])}).tolist() == [3, 5]
    with pytest.raises(GraphTypeError):
        sc.clone(x * 2, replace={x: y})
    assert sc.clone(x * 2, replace={x: y}, strict=False).eval({y: np.array([3])}).tolist() == [6]


def test_a_function_with_other_state():
    a, b, x = sc.shared(np.zeros(2), "a"), sc.shared(np.full(2, 7.0), "b"), T.dvector("x")
    train = sc.compile([x], {"sum": a + x}, updates=[(a, a + x)], name="train")
    other = train.copy(swap={a: b}, name="other")
    still = train.copy(delete_updates=True)
    np.testing.assert_array_equal(other([1.0, 2.0])["sum"], [8.0, 9.0])
    np.testing.assert_array_equal(b.get_value(), [8.0, 9.0])
    np.testing.assert_array_equal(a.get_value(), [0.0, 0.0])
    np.testing.assert_array_equal(still([1.0, 2.0])["sum"], [1.0, 2.0])
    np.testing.assert_array_equal(a.get_value(), [0.0, 0.0])
    assert (other.name, other.get_shared(), still.name) == ("other", [b], "train")
    with pytest.raises(GraphTypeError, match="no such state"):
        train.copy(swap={b: a})
    with pytest.raises(GraphTypeError, match="of its type"):
        train.copy(swap={a: sc.shared(np.zeros((2, 2)))})


def test_a_copy_without_updates_takes_the_same_arguments():
    state, step = sc.shared(np.zeros(2), "state"), T.dscalar("step")
    still = sc.compile([step], state, updates=[(state, state + step)]).copy(delete_updates=True)
    np.testing.assert_array_equal(still(3.0), [0.0, 0.0])


def test_attributes_of_theanos_functions_say_what_to_write():
    f = sc.compile([], T.zeros(2))
    with pytest.raises(AttributeError, match=r"function\.graph\.nodes"):
        _ = f.maker.fgraph
    with pytest.raises(AttributeError, match=r"'nothing'$"):
        _ = f.nothing


def test_a_shared_tensor_is_there():
    """`if not bias:` is how programs ask whether one was given; a scalar could be meant by its value."""
    assert sc.shared(np.zeros(3))
    with pytest.raises(GraphTypeError, match="no truth value"):
        bool(sc.shared(0.0))
    with pytest.raises(GraphTypeError, match="no truth value"):
        bool(sc.shared(np.zeros(3)) * 2)
