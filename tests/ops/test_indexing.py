"""`x[...]`, set_subtensor and inc_subtensor against NumPy; gradients; errors."""
from __future__ import annotations

import itertools
import pickle
import random
from typing import Any

import numpy as np
import pytest
from index_cases import random_array, random_index, random_shape, seen_through, update
from support import check_gradient, evaluate, variable_for

from symconv.errors import ArgumentError, GraphTypeError, IndexRangeError, ShapeError
from symconv.graph import Constant, TensorType, Variable
from symconv.ops.basic_indexing import Subtensor
from symconv.ops.creation import arange
from symconv.ops.indexing import inc_subtensor, set_subtensor, take
from symconv.ops.integer_indexing import Gather

Array = np.ndarray[Any, Any]


def numbered(*shape: int) -> Array:
    return np.arange(float(np.prod(shape))).reshape(shape)


def symbolic_index(index: tuple[Any, ...], rng: random.Random, bindings: dict[Variable, Any]) -> tuple[Any, ...]:
    """The index with some of its integers turned into inputs."""
    def symbolic(value: Any) -> Any:
        if not isinstance(value, int) or rng.random() < 0.6:
            return value
        scalar = Variable(TensorType(rng.choice(["int64", "int32", "int8"]), ()))
        bindings[scalar] = np.asarray(value, scalar.dtype)
        return scalar

    return tuple(slice(*map(symbolic, (each.start, each.stop, each.step))) if isinstance(each, slice) else symbolic(each)
                 for each in index)


def partly_known(array: Array, rng: random.Random) -> Variable:
    return Variable(TensorType(array.dtype.name, tuple(size if rng.random() < 0.5 else None for size in array.shape)))


@pytest.mark.parametrize("seed", range(400))
def test_random_index_reads_and_writes_as_numpy(seed: int) -> None:
    rng = random.Random(seed)
    x = numbered(*random_shape(rng))
    index = random_index(rng, x.shape, arrays=seed % 2 == 0)
    try:
        expected = x[index]
    except IndexError:
        return
    variable = partly_known(x, rng)
    bindings: dict[Variable, Any] = {variable: x}
    region = variable[symbolic_index(index, rng, bindings)]
    (found,) = evaluate([region], bindings)
    np.testing.assert_array_equal(found, expected, err_msg=repr(index))
    assert region.type.accepts(TensorType("float64", expected.shape))
    sizes = [size if rng.random() < 0.7 else 1 for size in expected.shape][rng.randint(0, expected.ndim):]
    y = np.asarray(np.random.default_rng(seed).standard_normal(sizes))
    for mode, function in (("set", set_subtensor), ("add", inc_subtensor)):
        (found,) = evaluate([function(region, y)], bindings)
        np.testing.assert_allclose(found, update(x, index, y, mode), err_msg=f"{mode} {index!r}")


def test_every_slice_of_a_short_axis() -> None:
    x = numbered(4)
    variables = [variable_for(x), variable_for(x, known=False)]
    for start in (None, *range(-6, 7)):
        for stop in (None, *range(-6, 7)):
            for step in (None, 1, 3, -1, -2):
                for variable in variables:
                    region = variable[start:stop:step]
                    expected = x[start:stop:step]
                    np.testing.assert_array_equal(evaluate([region], {variable: x})[0], expected)
                    if variable.type.is_static:
                        assert region.type.shape == expected.shape
                    else:
                        assert region.type.shape in ((None,), expected.shape)


def test_a_slice_of_an_unknown_axis_is_known_empty_only_where_it_always_is() -> None:
    x = Variable(TensorType("float32", (None,)))
    bounds = [None, 0, 1, 3, 20, -1, -2, -3, -20]
    for start, stop, step in itertools.product(bounds, bounds, [None, 1, 2, -1, -7]):
        if x[start:stop:step].type.shape == (0,):
            assert not any(len(range(size)[start:stop:step]) for size in range(60)), (start, stop, step)
    assert x[3:2].type.shape == x[-1:-1].type.shape == (0,)


def test_view_shows_the_same_elements() -> None:
    rng = random.Random(3)
    base = numbered(7, 6, 5)
    for memory in (base, base[::2, ::-1], base.transpose(2, 0, 1), base[:, :, 1:1]):
        for _ in range(40):
            index = tuple(each for each in random_index(rng, memory.shape, arrays=False) if each is not None)
            expected = memory[index]
            node = variable_for(memory)[index].apply
            np.testing.assert_array_equal(seen_through(node.op, memory, base, expected.shape), expected, err_msg=repr(index))


def test_symbolic_bounds_are_value_inputs_but_indices_are_not() -> None:
    x, i, j = (Variable(TensorType("int64", shape)) for shape in ((5, 6), (), ()))
    node = x[i, 1:j].apply
    assert isinstance(node.op, Subtensor)
    assert node.op.value_inputs == (2,)
    (bound,) = node.op.infer_bound([each.type for each in node.inputs], {2: np.array(4)})
    assert bound.shape == (3,)
    assert node.op.view((5, 6), (6, 1), (3,), {}) is None
    assert node.op.view((5, 6), (6, 1), (3,), {1: np.array(-1), 2: np.array(4)}) == (25, (1,))


def test_the_cross_entropy_gather_is_one_gather() -> None:
    x = Variable(TensorType("float32", (None, 10)))
    y = Variable(TensorType("int64", (None,)))
    picked = x[arange(x.shape[0]), y]
    assert picked.apply.op == Gather(2)
    assert picked.apply.inputs[0] is x
    values, labels = np.random.default_rng(0).random((4, 10), np.float32), np.array([1, 9, 0, 3])
    np.testing.assert_array_equal(evaluate([picked], {x: values, y: labels})[0], values[np.arange(4), labels])


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
@pytest.mark.parametrize("indices", [2, [0, 2, 2], [[0, -1], [1, 1]], ()])
def test_take(axis: int | None, indices: Any) -> None:
    x = numbered(3, 4, 3)
    variable = variable_for(x)
    expected = np.take(x, np.array(indices, dtype=np.int64), axis)
    np.testing.assert_array_equal(evaluate([take(variable, indices, axis)], {variable: x})[0], expected)


def test_known_masks_stand_for_their_positions() -> None:
    x = numbered(3, 4)
    variable = variable_for(x)
    mask = x % 3 == 1
    rows = np.array([True, False, True])
    for index in (mask, (rows, slice(1, 3)), (rows, [0, 2])):
        np.testing.assert_array_equal(evaluate([variable[index]], {variable: x})[0], x[index])
    with pytest.raises(ShapeError, match=r"bool\[4\] on float64\[3,4\]"):
        variable[np.ones(4, bool)]
    with pytest.raises(GraphTypeError, match=r"T\.where"):
        variable[variable > 2]


def test_scalars_and_empty_tensors() -> None:
    scalar = variable_for(np.float64(3).reshape(()))
    assert evaluate([scalar[()], scalar[None], scalar[...]], {scalar: 3.0}) == [3.0, np.array([3.0]), 3.0]
    empty = np.zeros((0, 3))
    variable = variable_for(empty)
    assert evaluate([variable[:, [0, 1]]], {variable: empty})[0].shape == (0, 2)
    assert evaluate([variable[[]]], {variable: empty})[0].shape == (0, 3)
    assert evaluate([inc_subtensor(variable[[]], 1.0)], {variable: empty})[0].shape == (0, 3)


def test_static_sizes_come_out_as_constants() -> None:
    x = Variable(TensorType("float32", (None, 3, 4)))
    assert isinstance(x.shape[1], Constant)
    assert isinstance(x.shape[-1], Constant)
    assert not isinstance(x.shape[0], Constant)
    y = Variable(TensorType("float32", (2, 3)))
    assert isinstance(y.shape, Constant)
    assert [int(size.data) for size in y.shape] == [2, 3]
    assert x[:y.shape[0]].type.shape == (None, 3, 4)
    assert x[:, :y.shape[0]].type.shape == (None, 2, 4)


def test_length_and_iteration() -> None:
    x = Variable(TensorType("float32", (3, None)))
    assert len(x) == 3
    assert [row.type.shape for row in x] == [(None,)] * 3
    with pytest.raises(GraphTypeError, match=r"shape\[0\]"):
        len(x[0])
    with pytest.raises(GraphTypeError, match="scalar"):
        iter(Variable(TensorType("float32", ())))


INDICES: list[Any] = [
    (1, slice(None, None, -2)), (slice(1, None), None, [0, 2, 2]), ([0, 2, 0], [1, 1, 1]), (..., [[0, 1], [1, 1]], 0),
    (0, slice(None), [0, 0]), [1, 1], (slice(-2, None), slice(0, 0)),
]


@pytest.mark.parametrize("index", INDICES, ids=repr)
def test_gradients_of_reading(index: Any) -> None:
    rng = np.random.default_rng(1)
    x = rng.standard_normal((3, 3, 2))
    index = index if isinstance(index, tuple) else (index,)
    check_gradient(lambda x: x[index] ** 2, x, order=2, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("function", [set_subtensor, inc_subtensor])
@pytest.mark.parametrize("index", INDICES, ids=repr)
def test_gradients_of_writing(index: Any, function: Any) -> None:
    rng = np.random.default_rng(2)
    index = index if isinstance(index, tuple) else (index,)
    x = rng.standard_normal((3, 3, 2))
    region = x[index].shape
    for shape in (region, region[1:], (1,) * len(region)):
        y = rng.standard_normal(shape)
        check_gradient(lambda x, y: function(x[index], y) ** 2, x, y)
    check_gradient(lambda x, y: function(x[index], y) ** 2, x, rng.standard_normal(region), order=2, rtol=1e-4, atol=1e-5)


def test_gradients_with_symbolic_bounds_and_arrays() -> None:
    rng = np.random.default_rng(4)
    x, labels = rng.standard_normal((4, 3)), np.array([2, 0, 2, 1])
    check_gradient(lambda x, labels: x[arange(x.shape[0]), labels] ** 2, x, labels, order=2, rtol=1e-4, atol=1e-5)
    check_gradient(lambda x, n, i: x[:n, i] ** 2, x, np.array(2), np.array(-1))
    check_gradient(lambda x, y, n: set_subtensor(x[n:], y) ** 2, x, rng.standard_normal(3), np.array(1))


def test_the_region_may_be_set_in_several_steps() -> None:
    """x[1:][0] is x[1:] indexed: what is set is x[1:], as in Theano; x[1:, [0, 2]] is one index of x."""
    x = numbered(4, 3)
    variable = variable_for(x)
    (found,) = evaluate([set_subtensor(variable[1:][0], 9.0)], {variable: x})
    np.testing.assert_array_equal(found, update(x[1:], 0, np.float64(9), "set"))
    (found,) = evaluate([set_subtensor(variable[1:, [0, 2]], 9.0)], {variable: x})
    np.testing.assert_array_equal(found, update(x, (slice(1, None), [0, 2]), np.float64(9), "set"))


def test_a_pickled_region_is_set_only_where_it_is_clear_what_it_indexes() -> None:
    x = variable_for(numbered(4, 3))
    plain, mixed = pickle.loads(pickle.dumps((x[1:], x[1:, [0, 2]])))
    assert set_subtensor(plain, 1.0).type == x.type
    with pytest.raises(GraphTypeError, match="index again"):
        set_subtensor(mixed, 1.0)


def test_index_errors_tell_index_axis_and_size() -> None:
    known, open_ = Variable(TensorType("float32", (5, 3))), Variable(TensorType("float32", (None, 3)))
    with pytest.raises(IndexRangeError, match=r"index -6 is outside axis 0\n  found: size 5\n  do: indices go from -5 to 4"):
        known[-6]
    with pytest.raises(IndexRangeError, match=r"index 3 is outside axis 1\n  found: size 3"):
        open_[0, 3]
    node = open_[7].apply
    with pytest.raises(IndexRangeError, match="index 7 is outside axis 0\n  found: size 4"):
        node.op.infer_bound([TensorType("float32", (4, 3))], {})
    scalar = Variable(TensorType("int64", ()))
    for bad in (3, -4):
        for region in (known[1, scalar], set_subtensor(known[1, scalar], 0.0)):
            with pytest.raises(IndexRangeError, match=f"index {bad} is outside axis 1\n  found: size 3"):
                evaluate([region], {known: np.zeros((5, 3), "float32"), scalar: np.array(bad)})
    vector = Variable(TensorType("int64", (None,)))
    for region in (known[:, vector], set_subtensor(known[:, vector], 0.0), inc_subtensor(known[:, vector], 0.0)):
        with pytest.raises(IndexRangeError, match="index 5 is outside axis 0\n  found: size 3"):
            evaluate([region], {known: np.zeros((5, 3), "float32"), vector: np.array([0, 5])})


def test_wrong_indices() -> None:
    x = Variable(TensorType("float32", (5, 3)))
    with pytest.raises(IndexRangeError, match="names 3 axes"):
        x[0, 0, 0]
    with pytest.raises(IndexRangeError, match="at most one"):
        x[..., ...]
    with pytest.raises(GraphTypeError, match="integers"):
        x[np.array([0.5])]
    with pytest.raises(GraphTypeError, match=r"1\.5 \(float\)"):
        x[1.5]
    with pytest.raises(GraphTypeError, match="bool"):
        x[True]
    with pytest.raises(GraphTypeError, match="integer scalar"):
        x[x[0, 0]:]
    with pytest.raises(ArgumentError, match="step"):
        x[::0]
    with pytest.raises(ShapeError, match=r"int64\[2\] and int64\[3\]"):
        x[[0, 1], [0, 1, 2]]


def test_wrong_values_and_regions() -> None:
    x = Variable(TensorType("float32", (5, 3)))
    with pytest.raises(ShapeError, match="size 2 on axis 1, not 3"):
        set_subtensor(x[1:], np.zeros(2, "float32"))
    with pytest.raises(GraphTypeError, match=r"float64\[3\]"):
        set_subtensor(x[0], np.zeros(3))
    with pytest.raises(GraphTypeError, match="more axes"):
        set_subtensor(x[0], np.zeros((1, 3), "float32"))
    with pytest.raises(GraphTypeError, match="only a region"):
        set_subtensor(x, 0.0)
    with pytest.raises(GraphTypeError, match="only a region"):
        inc_subtensor(x[0] * 2, 0.0)
    n = Variable(TensorType("int64", ()))
    with pytest.raises(ShapeError, match="size 2 on axis 0, not 4"):
        evaluate([set_subtensor(x[n:, 0], np.zeros(2, "float32"))], {x: np.zeros((5, 3), "float32"), n: np.array(1)})


@pytest.mark.parametrize("seed", range(20))
def test_random_gather_of_gradients_adds_up(seed: int) -> None:
    """The adjoint identity ⟨x[i], u⟩ = ⟨x, scatter_add(0, u, i)⟩."""
    rng = random.Random(seed)
    x = np.random.default_rng(seed).standard_normal(random_shape(rng, zeros=False))
    indices = random_array(rng, x.shape[0])
    variable = variable_for(x)
    region = variable[indices]
    u = np.random.default_rng(seed + 1).standard_normal(x[indices].shape)
    zeros = variable_for(x)
    (scattered,) = evaluate([inc_subtensor(zeros[indices], u)], {zeros: np.zeros_like(x)})
    (gathered,) = evaluate([region], {variable: x})
    np.testing.assert_allclose((gathered * u).sum(), (x * scattered).sum())
