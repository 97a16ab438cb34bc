"""The small graphs that the tests of printing print. Golden files quote line numbers of this file: add at the end."""
from __future__ import annotations

import numpy as np

import symconv as sc
import symconv.tensor as T

HOSTILE_NAMES = ["a=b", "x:0", '"q"', "new\nline", "ß", "", "<script>", "twin", "twin", "tab\t\x1b[31m\x00", "back\\slash",
                 "]]>", "\ud800", "\u202e", "long" * 60, "a;b->c{d}|<e>", "--", "&amp;", "%s {0}"]


def arithmetic():
    x, y = T.vector("x"), T.vector("y")
    product = x * y
    product.name = "product"
    return T.exp(product) + product - 2 * x


def classifier():
    images = T.tensor4("images", "float32", shape=(2, 1, 6, 6))
    filters = sc.shared(np.ones((3, 1, 3, 3), "float32"), "filters", shape=(3, 1, 3, 3))
    bias = sc.shared(np.zeros(3, "float32"), "bias", shape=(3,))
    maps = T.nnet.relu(T.nnet.conv2d(images, filters) + bias.dimshuffle("x", 0, "x", "x"))
    return images, filters, bias, maps.sum(axis=(2, 3))


def classify():
    """The classifier as a function whose program waits for the shape, with an update."""
    images, filters, _, sums = classifier()
    any_images = T.tensor4("any_images", "float32")
    return sc.compile([any_images], sums, givens={images: any_images}, updates=[(filters, filters * 0.5)], name="classify")


def counter():
    """Outputs that need copies, an update written in place and one that must be swapped in."""
    step = T.vector("step", "float64", shape=(3,))
    total = sc.shared(np.zeros(3), "total", shape=(3,))
    last = sc.shared(np.zeros(3), "last", shape=(3,))
    rows = step[::-1] * 2
    return sc.compile([step], [rows, step], updates=[(total, total + T.sqrt(step)), (last, total)], name="count")


def hostile():
    inputs = [T.vector(name, "float64") for name in HOSTILE_NAMES]
    total = inputs[0]
    for each in inputs[1:]:
        total = total + each
    total.name = "to\ntal\x07"
    return inputs, total


def chain(length, constant_every=0):
    x = result = T.vector("x", "float64")
    for number in range(length):
        result = result + number if constant_every and number % constant_every == 0 else T.tanh(result)
    return x, result


def blocked():
    """Two convolutions on blocks of channels, with conversions on both sides; compile it with `config.layout = "always"`."""
    images = T.tensor4("images", "float32", shape=(2, 8, 6, 6))
    first = sc.shared(np.ones((8, 8, 3, 3), "float32"), "first", shape=(8, 8, 3, 3))
    second = sc.shared(np.ones((16, 8, 3, 3), "float32"), "second", shape=(16, 8, 3, 3))
    hidden = T.nnet.relu(T.nnet.conv2d(images, first, border_mode="half"))
    return sc.compile([images], T.tanh(T.nnet.conv2d(hidden, second)), name="blocks")


def softplus_of_hostile():
    """A function whose rewrites show every hostile name."""
    inputs = [T.vector(name, "float64") for name in HOSTILE_NAMES]
    return sc.compile(inputs, [T.log(1 + T.exp(each)) for each in inputs], name="softplus")


def wrong_index():
    """A call with an index that its table has not; the input has a hostile name."""
    table, rows = T.matrix("table", "float64"), T.lvector('a "row"\n')
    return sc.compile([table, rows], T.exp(table.T[rows]) * 2)(np.zeros((4, 3)), np.array([0, 9]))


def first_nan():
    """A call in which a NaN appears."""
    v = T.matrix("v\n", "float64")
    return sc.compile([v], T.log(v.T) * 2, mode="nan_guard")(np.array([[1.0, -1.0]]))


def hostile_network():
    """A profiled function whose name, inputs and state have hostile names."""
    x = T.vector(HOSTILE_NAMES[3], "float64", shape=(2,))
    states = [sc.shared(np.zeros(2), name, shape=(2,)) for name in HOSTILE_NAMES]
    return sc.compile([x], x * 2, updates=[(state, state + x) for state in states], name="a\nb\x1b<script>", profile=True)
