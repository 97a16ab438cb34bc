"""The names users type for shapes and indexing, and the methods of variables."""
from __future__ import annotations

import numpy as np
from support import evaluate

import symconv.tensor as T
from symconv.tensor import shaping


def test_every_name_is_public_and_documented() -> None:
    for name in shaping.__all__:
        assert getattr(T, name) is getattr(shaping, name)
        assert getattr(shaping, name).__doc__, name


def test_methods_of_variables() -> None:
    x = T.matrix("x", dtype="float64")
    value = np.arange(6.0).reshape(2, 3)
    pairs = [
        (x.reshape(3, 2), value.reshape(3, 2)), (x.reshape((-1,)), value.ravel()), (x.flatten(), value.ravel()),
        (x.T, value.T), (x.transpose(1, 0), value.T), (x.dimshuffle("x", 1, 0), value.T[None]),
        (x.dimshuffle((1, 0)), value.T), (x[:, :1].squeeze(1), value[:, 0]), (x.repeat(2, 1), value.repeat(2, 1)),
        (x.take([1, 0], 0), value[[1, 0]]), (x.shape, np.array([2, 3])), (x.size, np.array(6)),
        (x[x.shape[0] - 1, -1], np.array(5.0)), (T.zeros_like(x) + T.ones(x.shape), np.ones((2, 3))),
        (x.reshape((x.shape[1], x.shape[0])), value.reshape(3, 2)),
    ]
    for number, (result, expected) in enumerate(pairs):
        np.testing.assert_array_equal(evaluate([result], {x: value})[0], expected, err_msg=str(number))
