"""Names and idioms that programs written for Theano use, and what they mean here."""
from __future__ import annotations

import importlib

import numpy as np
import pytest
from support import evaluate

import symconv as sc
import symconv.tensor as T
from symconv.errors import ArgumentError, GraphTypeError, ShapeError


@pytest.mark.parametrize(("path", "names"), [
    ("symconv", "function shared grad clone pp config Lop Rop In Out jacobian hessian"),
    ("symconv.printing", "debugprint pp"),
    ("symconv.tensor", "grad Lop Rop jacobian hessian specify_shape addbroadcast unbroadcast patternbroadcast power "
                       "int_div max_and_argmax "
                       "as_tensor_variable switch alloc fill inc_subtensor set_subtensor dmatrices lvectors ftensor4s"),
    ("symconv.tensor.nnet", "relu logsoftmax batch_normalization bilinear_upsampling conv2d conv2d_transpose"),
    ("symconv.gradient", "grad Lop Rop jacobian hessian consider_constant disconnected_grad zero_grad grad_clip grad_scale "
                         "verify_grad DisconnectedInputError"),
    ("symconv.tensor", "sort argsort topk diag diagonal cumsum cumprod tensordot batched_dot batched_tensordot alloc stack "
                       "concatenate join split stacklists ptp bincount to_one_hot as_tensor consider_constant"),
    ("symconv.tensor.extra_ops", "cumsum cumprod repeat bincount squeeze diff fill_diagonal fill_diagonal_offset to_one_hot"),
    ("symconv.tensor.nnet.neighbours", "images2neibs neibs2images"),
    ("symconv.tensor.nnet.abstract_conv", "conv2d conv3d conv2d_grad_wrt_inputs conv2d_grad_wrt_weights bilinear_upsampling "
                                          "bilinear_kernel_1D bilinear_kernel_2D separable_conv2d causal_conv1d"),
    ("symconv.tensor.nnet.bn", "batch_normalization batch_normalization_train batch_normalization_test"),
    ("symconv.tensor.nnet.dnn", "dnn_conv conv2d"),
    ("symconv.tensor.signal.pool", "pool_2d pool_3d"),
    ("symconv.tensor.shared_randomstreams", "RandomStreams MRG_RandomStreams"),
    ("symconv.tensor.signal.downsample", "max_pool_2d"),
])
def test_names_under_theanos_paths(path, names):
    module = importlib.import_module(path)
    assert [name for name in names.split() if not callable(getattr(module, name, None)) and name != "config"] == []


def test_types_make_variables():
    x = T.TensorType("float32", (False, True, False))("x")
    assert (x.name, x.type.shape) == ("x", (None, 1, None))
    assert x.broadcastable == (False, True, False)
    assert T.TensorType("float64", (2, None))().type.shape == (2, None)


def test_plurals_with_a_dtype():
    a, b = T.dmatrices("a", "b")
    assert (a.name, b.name, a.type) == ("a", "b", sc.TensorType("float64", (None, None)))
    assert [each.type.dtype for each in T.lvectors("i", "j")] == ["int64", "int64"]
    assert T.btensor3s("t")[0].type == sc.TensorType("int8", (None,) * 3)


def test_broadcast_patterns_say_sizes():
    x = T.matrix("x")
    row = T.addbroadcast(x, 0)
    assert row.type.shape == T.patternbroadcast(x, (True, False)).type.shape == (1, None)
    assert T.unbroadcast(x, 0) is x
    with pytest.raises(ShapeError):
        sc.compile([x], row * 2)(np.ones((2, 3), "float32"))
    with pytest.raises(GraphTypeError, match="one entry for each axis"):
        T.patternbroadcast(x, (True,))
    with pytest.raises((GraphTypeError, ArgumentError)):
        T.unbroadcast(x, 2)


def test_shared_variables_with_a_pattern():
    bias = sc.shared(np.zeros((1, 3), "float32"), broadcastable=(True, False))
    assert bias.type.shape == (1, None)
    bias.set_value(np.ones((1, 5), "float32"))
    with pytest.raises(ShapeError):
        bias.set_value(np.ones((2, 5), "float32"))
    for words in ({"broadcastable": (True,)}, {"broadcastable": (True, False), "shape": (1, 3)}):
        with pytest.raises(ArgumentError, match="one entry for each"):
            sc.shared(np.zeros((1, 3), "float32"), **words)


def test_methods():
    x = T.matrix("x", dtype="float64")
    value = np.array([[0.5, -1.5, 2.5], [3.2, 2.5, -4.0]])
    largest, place = T.max_and_argmax(x, axis=1)
    pairs = [(x.round(), value.round()), (x.ravel(), value.ravel()), (x.swapaxes(0, 1), value.T),
             (x.norm(), np.linalg.norm(value)), (x.norm(1, axis=0, keepdims=True), np.abs(value).sum(0, keepdims=True)),
             (largest, value.max(1)), (place, value.argmax(1)), (T.power(x, 2), value ** 2), (T.int_div(x, 2), value // 2)]
    for (result, expected) in pairs:
        found = evaluate([result], {x: value})[0]
        assert found.shape == np.shape(expected)
        np.testing.assert_allclose(found, expected)
    assert largest.owner is not None
    assert x.owner is None


@pytest.mark.parametrize(("name", "text"), [("scan", "loop in Python"), ("ifelse", "T.switch"),
                                            ("nothing", "no attribute 'nothing'$")])
def test_what_is_not_here_says_what_to_write(name, text):
    with pytest.raises(AttributeError, match=text):
        getattr(sc, name)
    assert not hasattr(sc, name)


@pytest.mark.parametrize(("path", "name", "text"), [
    ("symconv", "Op", "symconv.graph.Op"), ("symconv", "OpFromGraph", "a Python function"),
    ("symconv.tensor", "nonzero", "sizes are known before"), ("symconv.tensor", "unique", "sizes are known before"),
    ("symconv.tensor", "nlinalg", "no linear algebra"), ("symconv.tensor", "slinalg", "no linear algebra"),
    ("symconv.tensor", "gammaln", "no such function"), ("symconv.tensor", "cmatrix", "no complex numbers"),
    ("symconv.tensor.nnet", "softmax_with_bias", r"softmax\(x \+ b\)"), ("symconv.tensor.nnet", "ctc", "written out"),
    ("symconv.gradient", "DisconnectedType", "gives None"), ("symconv.gradient", "nothing", "no attribute 'nothing'$"),
    ("symconv.tensor", "nothing", "no attribute 'nothing'$"), ("symconv.tensor.nnet", "nothing", "no attribute 'nothing'$")])
def test_names_that_modules_do_not_have_say_what_to_write(path, name, text):
    with pytest.raises(AttributeError, match=text):
        getattr(importlib.import_module(path), name)


@pytest.mark.parametrize(("name", "text"), [("exp", r"T\.exp\(x\)"), ("nonzero", "sizes cannot depend"), ("copy", "never changed"),
                                            ("get_value", "x.eval"), ("nothing", "no attribute 'nothing'$")])
def test_methods_that_variables_do_not_have_say_what_to_write(name, text):
    x = T.matrix("x")
    with pytest.raises(AttributeError, match=text):
        getattr(x, name)
    assert getattr(x, name, None) is None


def test_what_stands_in_those_words_is_right():
    x = np.array([[0.5, -1.5, 2.5], [3.2, 2.5, -4.0]])
    n, actual, predicted = 3, np.array([0, 2, 2, 1]), np.array([0, 1, 2, 1])
    table = T.bincount(T.constant(actual) * n + predicted, minlength=n * n).reshape((n, n))
    np.testing.assert_array_equal(table.eval(), [[1, 0, 0], [0, 1, 0], [0, 1, 1]])
    pairs = [(T.log(x + T.sqrt(x ** 2 + 1)), np.arcsinh(x)), ((T.log1p(x / 9) - T.log1p(-x / 9)) / 2, np.arctanh(x / 9)),
             (T.log(5 + x + T.sqrt((5 + x) ** 2 - 1)), np.arccosh(5 + x)), (10 ** T.linspace(0, 2, 3), [1, 10, 100])]
    for found, wanted in pairs:
        np.testing.assert_allclose(found.eval(), wanted, rtol=1e-6)


def test_older_words():
    x = np.arange(40.0).reshape(2, 1, 5, 4)
    assert T.flatten(T.tensor4(), outdim=2).ndim == 2
    assert T.matrix().reshape((2, -1), ndim=2).type.shape == (2, None)
    assert [part.type.shape for part in T.split(x, [1, 4], n_splits=2, axis=2)] == [(2, 1, 1, 4), (2, 1, 4, 4)]
    with pytest.raises(ArgumentError, match="3 parts"):
        T.split(x, [1, 4], n_splits=3, axis=2)
    pooled = T.signal.downsample.max_pool_2d(x, (2, 2)).eval()
    np.testing.assert_array_equal(pooled[0, 0], [[5, 7], [13, 15], [17, 19]])
    np.testing.assert_array_equal(T.signal.downsample.max_pool_2d(x, (2, 2), ignore_border=True, st=(1, 2)).eval()[0, 0, 0], [5, 7])
    assert isinstance(T.matrix(), T.TensorVariable)
    assert T.row().type.broadcastable == (True, False)
    assert sc.printing.Print is sc.Print
    assert T.nnet.dnn.dnn_conv is importlib.import_module("symconv.tensor.nnet.dnn").dnn_conv


def test_products_with_a_hessian_written_out():
    x, v = T.dvector("x"), T.dvector("v")
    gradient = sc.grad((x ** 3).sum() + x[0] * x[1], x)
    point, direction = np.array([1.0, 2.0]), np.array([3.0, -1.0])
    wanted = np.array([[6.0, 1.0], [1.0, 12.0]]) @ direction
    for product in (sc.Rop(gradient, x, v), sc.grad((gradient * v).sum(), x)):
        np.testing.assert_allclose(evaluate([product], {x: point, v: direction})[0], wanted)


def test_mistakes_of_newcomers():
    x = T.matrix("x")
    with pytest.raises(GraphTypeError, match=r"set_subtensor"):
        x[0] = 3
    with pytest.raises(GraphTypeError, match=r"inc_subtensor"):
        x[0] += 1
    for build in (lambda: T.tensor4("x", (None, 3, 32, 32)), lambda: T.tensor("float32", (False,) * 4)):
        with pytest.raises(GraphTypeError, match=r"shape="):
            build()
    with pytest.raises(GraphTypeError, match="its name, a text"):
        T.matrix(3)
    with pytest.raises(GraphTypeError, match=r'v: float32\[\?\]\n  do: cast it: i.astype\("int64"\)'):
        x[T.vector("v")]


def test_batch_normalization_with_given_statistics():
    rng = np.random.default_rng(0)
    x, gamma, beta, mean, std = (rng.uniform(0.5, 2, shape) for shape in ((4, 3, 2, 2), *([(1, 3, 1, 1)] * 4)))
    for mode in ("low_mem", "high_mem"):
        found = T.nnet.batch_normalization(x, gamma, beta, mean, std, mode=mode).eval()
        np.testing.assert_allclose(found, (x - mean) * gamma / std + beta, rtol=1e-12)
    with pytest.raises(ArgumentError, match="low_mem"):
        T.nnet.batch_normalization(x, gamma, beta, mean, std, mode="fast")
