"""Shape, Reshape, DimShuffle, BroadcastTo: values and views against NumPy, static types, gradients, errors."""
from __future__ import annotations

import itertools
import random
from typing import Any

import numpy as np
import pytest
from index_cases import seen_through
from support import check_gradient, evaluate, variable_for

from symconv.errors import ArgumentError, GraphTypeError, ShapeError
from symconv.graph import Constant, TensorType, Variable
from symconv.graph.gradient import grad
from symconv.ops.axis_moves import (
    expand_dims,
    moveaxis,
    shape_padaxis,
    shape_padleft,
    shape_padright,
    squeeze,
    swapaxes,
    transpose,
)
from symconv.ops.joining import concatenate, stack
from symconv.ops.shape import DimShuffle, Shape, broadcast_to, dimshuffle, flatten, reshape
from symconv.ops.shape_rules import reshaped_strides


def tensor(*shape: int | None, dtype: str = "float32") -> Variable:
    return Variable(TensorType(dtype, shape))


def numbered(*shape: int) -> np.ndarray[Any, Any]:
    return np.arange(float(np.prod(shape))).reshape(shape)


@pytest.mark.parametrize(("old", "new"), [
    ((2, 6), (3, 4)), ((2, 6), (-1,)), ((2, 6), (4, -1)), ((2, 6), -1), ((), (1, 1)), ((1, 1), ()), ((0, 3), (0, 7)),
    ((0, 3), (5, 0)), ((0, 3), (-1, 3)), ((4,), np.array([2, 2])), ((2, 3, 4), [6, 4]),
])
def test_reshape_gives_numpys_answer(old: tuple[int, ...], new: Any) -> None:
    x = numbered(*old)
    expected = x.reshape(new)
    known, open_ = variable_for(x), variable_for(x, known=False)
    assert reshape(known, new).type.shape == expected.shape
    for variable in (known, open_):
        (found,) = evaluate([reshape(variable, new)], {variable: x})
        np.testing.assert_array_equal(found, expected)


def test_static_sizes_of_a_reshape() -> None:
    x = tensor(None, 3, 4)
    n = x.shape[0]
    assert reshape(x, (n, 12)).type.shape == (None, 12)
    assert reshape(x, (n, -1)).type.shape == (None, 12)
    assert reshape(x, (-1, n, 6)).type.shape == (2, None, 6)
    assert reshape(x, (-1, 4)).type.shape == (None, 4)
    assert reshape(x, x.shape).type.shape == (None, 3, 4)
    assert reshape(x, concatenate([x.shape[:2], [2, 2]])).type.shape == (None, 3, 2, 2)
    assert reshape(x, stack([x.shape[0], 12])).type.shape == (None, 12)
    assert reshape(x, [x.shape[0], x.shape[1] * x.shape[2]]).type.shape == (None, 12)
    assert reshape(tensor(2, 6), (tensor(3, None).shape[0], -1)).type.shape == (3, 4)
    assert reshape(tensor(2, 6), (x.shape[0], 4)).type.shape == (3, 4)


def test_reshape_by_computed_sizes() -> None:
    x, n = tensor(None, None, dtype="float64"), Variable(TensorType("int32", ()))
    vector, long = tensor(2, dtype="int64"), tensor(None, dtype="int16")
    values = {x: numbered(4, 6), n: np.int32(8), vector: np.array([2, 12]), long: np.array([3, 4, -1], "int16")}
    results = evaluate([reshape(x, (n, -1)), reshape(x, vector), reshape(x, long, ndim=3), x.reshape(n // 2, 6)], values)
    assert [each.shape for each in results] == [(8, 3), (2, 12), (3, 4, 2), (4, 6)]
    with pytest.raises(ShapeError, match="static length"):
        reshape(x, long)


def test_reshape_errors_tell_shapes_and_counts() -> None:
    with pytest.raises(ShapeError, match=r"from \(2, 6\) to \(3, 5\): 12 elements and 15"):
        reshape(tensor(2, 6), (3, 5))
    with pytest.raises(ShapeError, match="do not divide 12 elements"):
        reshape(tensor(2, 6), (5, -1))
    with pytest.raises(ShapeError, match="at most one -1"):
        reshape(tensor(2, 6), (-1, -1))
    with pytest.raises(ShapeError, match="sizes from 0"):
        reshape(tensor(2, 6), (-2, 6))
    with pytest.raises(ShapeError, match="beside a size of 0"):
        reshape(tensor(0, 6), (0, -1))
    with pytest.raises(GraphTypeError, match="integer scalars"):
        reshape(tensor(2, 6), (tensor(), 3))
    with pytest.raises(GraphTypeError, match=r"2\.5"):
        reshape(tensor(2, 6), (2.5, 3))
    node = reshape(tensor(None, 6), (3, 4)).apply
    with pytest.raises(ShapeError, match=r"from \(3, 6\) to \(3, 4\): 18 elements and 12"):
        node.op.infer_bound([TensorType("float32", (3, 6)), node.inputs[1].type], {1: np.array([3, 4])})
    (bound,) = node.op.infer_bound([TensorType("float32", (2, 6)), node.inputs[1].type], {1: np.array([3, 4])})
    assert bound.shape == (3, 4)


@pytest.mark.parametrize("ndim", [1, 2, 3, 4])
def test_flatten(ndim: int) -> None:
    x = numbered(2, 3, 4)
    sizes = (2, 3, 4, 1)
    expected = x.reshape(*sizes[:ndim - 1], -1)
    for known in (True, False):
        variable = variable_for(x, known)
        np.testing.assert_array_equal(evaluate([flatten(variable, ndim)], {variable: x})[0], expected)
    with pytest.raises(ShapeError, match="1 to 4"):
        flatten(x, 5)


def test_flatten_keeps_what_is_known() -> None:
    assert flatten(tensor(None, 3, 4), 2).type.shape == (None, 12)
    assert flatten(tensor()).type.shape == (1,)
    empty = tensor(0, None)
    assert evaluate([flatten(empty)], {empty: np.zeros((0, 3), "float32")})[0].shape == (0,)


@pytest.mark.parametrize("pattern", [
    (1, 0), ("x", 0, 1), (1, "x", 0, "x"), (None, 1, 0), (0, 1),
])
def test_dimshuffle(pattern: Any) -> None:
    x = numbered(2, 3)
    variable = variable_for(x)
    kept = [axis for axis in pattern if isinstance(axis, int)]
    expected = x.transpose(kept)[tuple(slice(None) if isinstance(axis, int) else None for axis in pattern)]
    result = dimshuffle(variable, pattern)
    assert result.type.shape == expected.shape
    np.testing.assert_array_equal(evaluate([result], {variable: x})[0], expected)
    np.testing.assert_array_equal(evaluate([variable.dimshuffle(*pattern)], {variable: x})[0], expected)


def test_dimshuffle_drops_axes_of_size_one_only() -> None:
    assert dimshuffle(tensor(3, 1, 2), (2, 0)).type.shape == (2, 3)
    with pytest.raises(ShapeError, match=r"axis 0 is dropped, so its size must be 1\n  found: size 3"):
        dimshuffle(tensor(3, 1), (1,))
    op = DimShuffle((1,), 2)
    assert op.infer(TensorType("float32", (None, 4))) == (TensorType("float32", (4,)),)
    with pytest.raises(ShapeError, match="axis 0 is dropped"):
        op.infer_bound([TensorType("float32", (2, 4))], {})
    x = tensor(None, 4)
    with pytest.raises(ShapeError, match="size 3"):
        evaluate([dimshuffle(x, (1,))], {x: np.zeros((3, 4), "float32")})
    with pytest.raises(GraphTypeError, match="at most once"):
        dimshuffle(tensor(2, 3), (0, 0, 1))
    with pytest.raises(ArgumentError, match="no axis 2"):
        dimshuffle(tensor(2, 3), (0, 2))


def test_axis_moves_agree_with_numpy() -> None:
    x = numbered(2, 1, 3, 4)
    v = variable_for(x)
    pairs = [(transpose(v), x.T), (v.T, x.T), (transpose(v, (3, 1, -2, 0)), x.transpose(3, 1, -2, 0)),
             (v.transpose(1, 0, 3, 2), x.transpose(1, 0, 3, 2)), (swapaxes(v, 0, -1), np.swapaxes(x, 0, -1)),
             (moveaxis(v, 0, -1), np.moveaxis(x, 0, -1)), (moveaxis(v, (0, 1), (-1, 0)), np.moveaxis(x, (0, 1), (-1, 0))),
             (moveaxis(v, [3, 0], [1, 2]), np.moveaxis(x, [3, 0], [1, 2])),
             (expand_dims(v, (0, -1)), np.expand_dims(x, (0, -1))), (expand_dims(v, 2), np.expand_dims(x, 2)),
             (squeeze(v), x.squeeze()), (v.squeeze(1), x.squeeze(1)),
             (squeeze(v, (-3,)), x.squeeze(-3)), (shape_padleft(v, 2), x[None, None]), (shape_padright(v), x[..., None]),
             (shape_padaxis(v, -2), np.expand_dims(x, -2))]
    for number, (result, expected) in enumerate(pairs):
        assert result.type.shape == expected.shape, number
        np.testing.assert_array_equal(evaluate([result], {v: x})[0], expected, err_msg=str(number))
    with pytest.raises(ShapeError, match="axis 0 of"):
        squeeze(v, 0)
    with pytest.raises(ArgumentError, match="every axis"):
        transpose(v, (0, 1))
    with pytest.raises(ArgumentError, match="twice"):
        moveaxis(v, (0, 0), (1, 2))


@pytest.mark.parametrize(("old", "new"), [((3, 1), (2, 3, 4)), ((), (2, 0)), ((1,), (0,)), ((2, 3), (2, 3)),
                                          ((0, 1), (0, 5)), ((1, 1), (1, 1))])
def test_broadcast_to(old: tuple[int, ...], new: tuple[int, ...]) -> None:
    x = numbered(*old)
    for known in (True, False):
        variable = variable_for(x, known)
        result = broadcast_to(variable, new)
        assert result.type.shape == new
        np.testing.assert_array_equal(evaluate([result], {variable: x})[0], np.broadcast_to(x, new))


def test_broadcast_to_errors() -> None:
    with pytest.raises(ShapeError, match="axis 0 of size 3 does not broadcast to size 4"):
        broadcast_to(tensor(3), (2, 4))
    with pytest.raises(ShapeError, match="takes no axes away"):
        broadcast_to(tensor(3, 4), (4,))
    with pytest.raises(ShapeError, match="from 0"):
        broadcast_to(tensor(3), (-1, 3))
    n, x = Variable(TensorType("int64", ())), tensor(None)
    node = broadcast_to(x, (2, n)).apply
    with pytest.raises(ShapeError, match="size 3 does not broadcast to size 4"):
        node.op.infer_bound([TensorType("float32", (3,)), node.inputs[1].type], {1: np.array([2, 4])})


def test_gradients() -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((2, 1, 3))
    for build in (lambda x: reshape(x, (3, -1)) ** 2, lambda x: dimshuffle(x, (2, "x", 0)) ** 2, lambda x: flatten(x) ** 3,
                  lambda x: broadcast_to(x, (4, 2, 2, 3)) ** 2, lambda x: squeeze(x, 1) ** 2, lambda x: x.T ** 2):
        check_gradient(build, x, order=2, rtol=1e-4, atol=1e-5)


def test_a_shape_has_no_gradient() -> None:
    x = tensor(None, dtype="float64")
    cost = (x * x.shape[0].astype("float64")).sum()
    assert evaluate([grad(cost, x)], {x: np.ones(3)})[0].tolist() == [3.0, 3.0, 3.0]


def test_shape_and_size() -> None:
    x = tensor(None, 3)
    assert x.shape.apply.op == Shape()
    assert evaluate([x.shape, x.size, x.shape[0], x.shape[-1]], {x: np.zeros((4, 3), "float32")})[1] == 12
    static = tensor(2, 3)
    assert isinstance(static.size, Constant)
    assert evaluate([static.size, static.shape])[1].tolist() == [2, 3]


def strided_parts(base: np.ndarray[Any, Any]) -> list[np.ndarray[Any, Any]]:
    return [base, base[::2], base[:, ::-1], base.transpose(2, 0, 1), base[:, 1:2], base[:, :, 0:0]]


def test_views_show_the_same_elements() -> None:
    base = numbered(4, 3, 5)
    for memory in strided_parts(base):
        for pattern in itertools.permutations((0, 1, None, 2)):
            op = DimShuffle(pattern, 3)
            expected = op.reference(memory)[0]
            np.testing.assert_array_equal(seen_through(op, memory, base, expected.shape), expected)
        wanted = (2, *memory.shape[:1], 4, *memory.shape[2:])
        stretched = memory[:, :1]
        op = broadcast_to(variable_for(stretched), wanted).apply.op
        expected = np.broadcast_to(stretched, wanted)
        np.testing.assert_array_equal(seen_through(op, stretched, base, wanted), expected)


def test_reshape_is_a_view_exactly_where_numpy_makes_one() -> None:
    base = numbered(4, 6, 5)
    rng = random.Random(0)
    for memory in [*strided_parts(base), base[:, ::3], base[:, :, :1]]:
        for _ in range(60):
            sizes = [memory.size]
            for _ in range(rng.randint(0, 3)):
                place = rng.randrange(len(sizes))
                divisors = [size for size in range(1, sizes[place] + 1) if sizes[place] % size == 0] or [1]
                first = rng.choice(divisors)
                sizes[place:place + 1] = [first, sizes[place] // first]
            expected = memory.reshape(sizes)
            op = reshape(variable_for(memory), sizes).apply.op
            found = seen_through(op, memory, base, tuple(sizes))
            if found is None:
                assert not np.shares_memory(expected, base), (memory.shape, memory.strides, sizes)
            else:
                np.testing.assert_array_equal(found, expected)
    assert reshaped_strides((0, 3), (3, 1), (5, 0)) is not None
