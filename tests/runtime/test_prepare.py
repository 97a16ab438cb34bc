"""Steps that depend on nothing but state run only when that state changes."""
from __future__ import annotations

import numpy as np
import pytest

import symconv as sc
import symconv.tensor as T
from symconv.tensor import nnet


@pytest.fixture
def scaled():
    """x @ (exp(W) as float32 matrix) where exp(W) needs a step of its own, and the state."""
    state = sc.shared(np.zeros((3, 4), "float32"), "W")
    x = T.matrix("x")
    return sc.compile([x], T.dot(x, T.exp(state)), profile=True), state


def steps_run(function):
    """How many steps took time in all calls so far, by name."""
    (program,) = function.profile.as_dict()["programs"]
    return {row["name"]: row["seconds"] > 0 for row in program["steps"]}


X = np.ones((2, 3), "float32")


def test_a_step_of_state_alone_is_prepared(scaled):
    function, _ = scaled
    assert function(X).tolist() == [[3] * 4] * 2
    (program,) = function.programs
    assert program.n_prepared == 1
    assert "when state changes" in program.describe()
    first, second = function.profile.as_dict()["programs"][0]["steps"]
    before = first["seconds"]
    for _ in range(5):
        function(X)
    first, second = function.profile.as_dict()["programs"][0]["steps"]
    assert first["seconds"] == before > 0
    assert second["seconds"] > 0


def test_set_value_and_updates_by_other_functions_are_seen(scaled):
    function, state = scaled
    function(X)
    state.set_value(np.full((3, 4), np.log(2), "float32"))
    np.testing.assert_allclose(function(X), 6)
    sc.compile([], None, updates=[(state, state * 2)])()
    np.testing.assert_allclose(function(X), 12)
    sc.compile([], None, updates=[(state, T.zeros((3, 4)) + state.T.T * 0)])()
    np.testing.assert_allclose(function(X), 3)
    state.zero()
    np.testing.assert_allclose(function(X), 3)


def test_a_borrowed_value_that_is_written_from_outside_is_seen(scaled):
    function, state = scaled
    function(X)
    array = state.get_value(borrow=True)
    array[...] = np.log(3)
    np.testing.assert_allclose(function(X), 9, rtol=1e-6)
    array[...] = np.log(4)
    np.testing.assert_allclose(function(X), 12, rtol=1e-6)


def test_state_that_the_function_updates_is_not_prepared():
    state = sc.shared(np.zeros((3, 4), "float32"), "W")
    x = T.matrix("x")
    function = sc.compile([x], T.dot(x, T.exp(state)), updates=[(state, state + np.float32(np.log(2)))])
    assert [float(function(X)[0, 0]) for _ in range(3)] == pytest.approx([3, 6, 12])
    assert function.programs[0].n_prepared == 0


def test_every_shape_has_its_own_preparation(scaled):
    function, state = scaled
    wide = np.ones((5, 3), "float32")
    function(X)
    function(wide)
    state.set_value(np.full((3, 4), np.log(2), "float32"))
    np.testing.assert_allclose(function(X), 6)
    np.testing.assert_allclose(function(wide), 6)


def test_a_large_result_made_from_prepared_ones_is_prepared_too():
    """Winograd weights of weights that batch normalisation has scaled: the second step does not read the state itself."""
    size = 2100  # 17.6 MB: more than what is kept of constants alone
    a = sc.shared(np.linspace(0, 1, 2 * size, dtype="float32").reshape(size, 2), shape=(size, 2))
    x = T.tensor("x", "float32", (size,))
    function = sc.compile([x], (nnet.softmax(T.dot(a, a.T)) * x).sum())
    function(np.ones(size, "float32"))
    assert function.programs[0].n_prepared == 2
    assert function(np.ones(size, "float32")) == pytest.approx(size, rel=1e-4)
