"""The pooling functions: arguments, defaults, errors; values are tested in tests/ops/test_pooling.py."""
from __future__ import annotations

import numpy as np
import pytest
from support import evaluate

from symconv.errors import ArgumentError, GraphTypeError
from symconv.graph import TensorType, Variable
from symconv.graph.gradient import grad
from symconv.ops.pooling import Pool
from symconv.tensor import nnet
from symconv.tensor.signal import pool as signal_pool

IMAGES = Variable(TensorType("float32", (2, 3, 7, 9)), "images")


def test_defaults():
    result = nnet.pool_2d(IMAGES, 2)
    assert result.apply.op == Pool("max", (2, 2), (2, 2), (0, 0), (0, 0), True)
    assert result.static_shape == (2, 3, 3, 4)
    assert signal_pool.pool_2d is nnet.pool_2d


def test_arguments_by_axis_and_by_side():
    result = nnet.pool_2d(IMAGES, (3, 2), False, (1, 2), ((1, 0), 1), "sum")
    assert result.apply.op == Pool("sum", (3, 2), (1, 2), (1, 1), (0, 1), False)
    assert nnet.pool_1d(IMAGES, np.int64(4), stride=[2]).static_shape == (2, 3, 7, 3)
    assert nnet.pool_3d(IMAGES, np.array([3, 2, 2])).static_shape == (2, 1, 3, 4)


def test_named_forms():
    assert nnet.max_pool_2d(IMAGES, 3, stride=2, pad=1).apply.op == Pool("max", (3, 3), (2, 2), (1, 1), (1, 1))
    assert nnet.average_pool_1d(IMAGES, 3, pad=1).apply.op == Pool("average_exc_pad", (3,), (3,), (1,), (1,))
    assert nnet.average_pool_3d(IMAGES, 2, include_pad=True).apply.op.mode == "average_inc_pad"


def test_global_pooling():
    x = np.random.default_rng(0).standard_normal((2, 3, 4, 5)).astype("float32")
    variable = Variable(TensorType("float32", (None, 3, None, None)))
    outputs = [nnet.global_average_pool(variable), nnet.global_max_pool(variable, keepdims=True)]
    mean, largest = evaluate(outputs, {variable: x})
    np.testing.assert_allclose(mean, x.mean((2, 3)), rtol=1e-6)
    np.testing.assert_array_equal(largest, x.max((2, 3), keepdims=True))
    gradient = grad(outputs[0].sum(), variable)
    np.testing.assert_allclose(evaluate([gradient], {variable: x})[0], np.full(x.shape, 1 / 20), rtol=1e-6)
    ties = Variable(TensorType("float32", (1, 1, 2, 2)))
    gradient = grad(nnet.global_max_pool(ties).sum(), ties)
    np.testing.assert_array_equal(evaluate([gradient], {ties: np.ones((1, 1, 2, 2), "float32")})[0], [[[[1, 0], [0, 0]]]])
    with pytest.raises(GraphTypeError, match="rank 3"):
        nnet.global_max_pool(Variable(TensorType("float32", (2, 3))))


@pytest.mark.parametrize(("arguments", "error", "text"), [
    ({"ws": 2, "pad": 2}, ArgumentError, "padding must be smaller than the window"),
    ({"ws": (3, 1), "pad": (0, 1)}, ArgumentError, "pad 1 and window 1 on pooled axis 1"),
    ({"ws": 0}, ArgumentError, "ws starts at 1"),
    ({"ws": 2, "stride": 0}, ArgumentError, "stride starts at 1"),
    ({"ws": 2, "pad": -1}, ArgumentError, "pad starts at 0"),
    ({"ws": 2, "mode": "average"}, ArgumentError, "average_exc_pad"),
    ({"ws": (2, 2, 2)}, ArgumentError, "one int for each of the 2"),
    ({"ws": 2, "pad": (1, 1, 1)}, ArgumentError, "one entry for each of the 2"),
    ({"ws": 2.0}, GraphTypeError, "Python ints"),
    ({"ws": Variable(TensorType("int64", ()))}, GraphTypeError, "Python ints"),
    ({"ws": 2, "ignore_border": None}, GraphTypeError, "True or False"),
    ({"ds": 2}, GraphTypeError, "call it 'ws'"),
    ({"ws": 2, "st": 2}, GraphTypeError, "call it 'stride'"),
    ({"ws": 2, "padding": 1}, GraphTypeError, "call it 'pad'"),
    ({"ws": 2, "strides": 1}, GraphTypeError, "no argument 'strides'"),
    ({}, GraphTypeError, "needs the window size"),
])
def test_wrong_arguments(arguments, error, text):
    with pytest.raises(error, match=text):
        nnet.pool_2d(IMAGES, **arguments)


def test_a_rank_that_is_too_low_names_the_users_line():
    with pytest.raises(GraphTypeError, match=r"needs an input of rank 3(.|\n)*test_pooling_functions"):
        nnet.pool_3d(Variable(TensorType("float32", (2, 3))), 2)
