"""pprint: read back by Python, the text must mean the expression; brackets only where needed."""
from __future__ import annotations

import random
import time

import numpy as np
import pytest
from printing.graphs import chain, classify
from support import evaluate

import symconv as sc
import symconv.tensor as T

_NUMPY = {"exp": np.exp, "tanh": np.tanh, "where": np.where, "maximum": np.maximum, "sum": np.sum, "abs": np.abs,
          "relu": lambda x: np.maximum(x, 0), "float64": np.float64, "transpose": np.transpose, "reshape": np.reshape,
          "concatenate": np.concatenate, "max": np.max, "argmax": np.argmax}


def read_back(text, **names):
    """The value that Python gives the text, with NumPy's functions."""
    main, *parts = text.split("\n")
    scope = {**_NUMPY, **names}
    for part in parts:
        name, _, expression = part.removeprefix("where").strip().partition(" = ")
        scope[name] = eval(expression, {"__builtins__": {}}, scope)
    return eval(main, {"__builtins__": {}}, scope)


def grow(generator, leaves, size):
    """A random expression of the operators that have a symbol."""
    expressions = list(leaves)
    for _ in range(size):
        a, b = generator.choice(expressions), generator.choice(expressions[-4:])
        expressions.append(generator.choice([
            lambda a, b: a + b, lambda a, b: a - b, lambda a, b: a * b, lambda a, b: a / (b * b + 1.5), lambda a, b: -a,
            lambda a, b: (a * a + 0.5) ** T.tanh(b), lambda a, b: T.where(a > b, a, b), lambda a, b: T.exp(-T.abs(a)),
            lambda a, b: T.cast((a < b) & ~(b >= a * 2) | (a <= b), "float64"), lambda a, b: T.maximum(a, b) % 3.0,
            lambda a, b: a // (b * b + 1.0), lambda a, b: T.tanh(a)])(a, b))
    return expressions[-1]


@pytest.mark.parametrize("seed", range(60))
def test_python_reads_the_same_expression(seed):
    generator = random.Random(seed)
    x, y = T.vector("x", "float64"), T.vector("y", "float64")
    output = grow(generator, [x, y], generator.randint(3, 40))
    values = {name: np.random.default_rng(seed).normal(size=5) for name in "xy"}
    (expected,) = evaluate([output + 0.0 * x], {x: values["x"], y: values["y"]})
    with np.errstate(all="ignore"):
        found = read_back(sc.pprint(output), **values) + 0.0 * values["x"]
    np.testing.assert_allclose(found, expected, rtol=1e-9, equal_nan=True)


@pytest.mark.parametrize(("build", "text"), [
    (lambda x, m: (x + 1) + 2, "x + 1.0 + 2.0"), (lambda x, m: 1 + (x + 2), "1.0 + (x + 2.0)"),
    (lambda x, m: x - (x - 1), "x - (x - 1.0)"), (lambda x, m: (x * 2) * x, "x * 2.0 * x"),
    (lambda x, m: x / (x / 2), "x / (x / 2.0)"),
    (lambda x, m: (x + 1) * 2, "(x + 1.0) * 2.0"), (lambda x, m: -(x**2), "-x**2.0"), (lambda x, m: (-x) ** 2, "(-x)**2.0"),
    (lambda x, m: x ** (x**2), "x**x**2.0"), (lambda x, m: (x**x) ** 2, "(x**x)**2.0"), (lambda x, m: x ** (-x), "x**-x"),
    (lambda x, m: T.neg(-x), "--x"), (lambda x, m: (x > 1) & (x < 2), "(x > 1.0) & (x < 2.0)"),
    (lambda x, m: T.eq(x > 1, x < 2), "(x > 1.0) == (x < 2.0)"), (lambda x, m: m.T @ (m + 1), "m.T @ (m + 1.0)"),
    (lambda x, m: (m + 1).T, "(m + 1.0).T"), (lambda x, m: m[1:, 0] * 2, "m[1:, 0] * 2.0"),
    (lambda x, m: (m * 2)[0], "(m * 2.0)[0]"), (lambda x, m: m + x.dimshuffle("x", 0), "m + x"),
    (lambda x, m: m.sum(), "sum(m)"), (lambda x, m: m.sum(axis=1, keepdims=True), "sum(m, axis=1, keepdims=True)"),
    (lambda x, m: T.concatenate([x, x * 2]), "concatenate([x, x * 2.0], axis=0)"), (lambda x, m: m.shape[0], "m.shape[0]"),
    (lambda x, m: T.cast(x, "float32"), "float32(x)"), (lambda x, m: x * T.constant(2), "x * 2")])
def test_brackets_and_phrases(build, text):
    assert sc.pprint(build(T.vector("x", "float64"), T.matrix("m", "float64"))) == text


def test_convolutions_are_written_as_the_user_calls_them():
    x, w, b = T.tensor4("x", "float32"), T.tensor4("W", "float32"), T.vector("b", "float32")
    plain = T.nnet.relu(T.nnet.conv2d(x, w) + b.dimshuffle("x", 0, "x", "x"))
    assert sc.pprint(plain) == "relu(conv2d(x, W) + b)"
    assert sc.pprint(T.nnet.conv2d(x, w, border_mode=(1, 2), subsample=(2, 2), filter_flip=False)) \
        == "conv2d(x, W, border_mode=(1, 2), stride=2, flip=False)"
    assert "conv2d_wgrad(" in sc.pprint(sc.grad(plain.sum(), w))


def test_long_repeated_parts_get_names_that_no_leaf_has():
    x = T.vector("t1", "float64")
    part = T.exp(x + 1.25) * T.tanh(x * 2.5) + T.maximum(x, 0.125)
    text = sc.pprint(part * part)
    assert text == "t1_ * t1_\nwhere t1_ = exp(t1 + 1.25) * tanh(t1 * 2.5) + maximum(t1, 0.125)"
    short = T.exp(x)
    assert sc.pprint(short * short) == "exp(t1) * exp(t1)"


def test_doubling_does_not_grow_exponentially():
    x = result = T.vector("x", "float64")
    for _ in range(200):
        result = result * result + x
    assert len(sc.pprint(result)) < 20_000


def test_fused_operations_read_like_their_parts():
    function = classify()
    function.prepare((2, 1, 6, 6))
    assert sc.pprint(function).splitlines()[0] == "output: sum(relu(conv2d(any_images, filters) + bias), axis=(2, 3))"


def test_a_chain_of_20000_nodes():
    start = time.process_time()
    text = sc.pprint(chain(20_000)[1])
    assert time.process_time() - start < 5
    assert text == "tanh(" * 20_000 + "x" + ")" * 20_000
