"""One error for each wrong use: its class, the sizes or names in its text, and the user's own line."""
from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest

import symconv as sc
import symconv.tensor as T
from symconv.errors import (
    ArgumentError,
    GraphTypeError,
    IndexRangeError,
    InputTypeError,
    MissingInputError,
    ShapeError,
    UnusedInputError,
    UserError,
)
from symconv.tensor import nnet


def zeros(*shape, dtype="float32"):
    return np.zeros(shape, dtype)


x4, w4 = T.tensor4("x4"), T.tensor4("w4")
vector, matrix = T.vector("vector"), T.matrix("matrix")
state = sc.shared(zeros(3), "state")

# name, what is done, error, pieces of the text; True where the text must show a line of this file
CASES: list[tuple[str, Callable[[], object], type[Exception], list[str], bool]] = [
    ("argument of a wrong dtype", lambda: sc.compile([vector], vector)(zeros(3, dtype="float64") + 0.1),
     InputTypeError, ["'vector'", "float32", "float64", "astype"], False),
    ("argument of a wrong rank", lambda: sc.compile([vector], vector)(zeros(3, 4)),
     InputTypeError, ["'vector'", "rank 1", "rank 2", "(3, 4)"], False),
    ("argument that is no array", lambda: sc.compile([vector], vector)(["a"]), InputTypeError, ["'vector'", "numeric"], False),
    ("argument that is symbolic", lambda: sc.compile([vector], vector)(matrix), InputTypeError, ["symbolic", "eval"], False),
    ("argument that is None", lambda: sc.compile([vector], vector)(None), InputTypeError, ["'vector'"], False),
    ("ragged argument", lambda: sc.compile([matrix], matrix)([[1], [1, 2]]), InputTypeError, ["'matrix'"], False),
    ("too many arguments", lambda: sc.compile([vector], vector)(zeros(1), zeros(1)), InputTypeError, ["1 arguments", "2"], False),
    ("missing argument", lambda: sc.compile([vector, matrix], vector + matrix)(zeros(1)),
     InputTypeError, ["misses", "'matrix'"], False),
    ("unknown keyword", lambda: sc.compile([vector], vector)(other=zeros(1)), InputTypeError, ["'other'", "vector"], False),
    ("argument given twice", lambda: sc.compile([vector], vector)(zeros(1), vector=zeros(1)), InputTypeError, ["twice"], False),
    ("input that is missing", lambda: sc.compile([vector], vector + matrix),
     MissingInputError, ["'matrix'", "float32[?,?]", "inputs: vector", "givens"], True),
    ("input that is not used", lambda: sc.compile([vector, matrix], vector),
     UnusedInputError, ["'matrix'", "number 1", "on_unused_input"], True),
    ("input that stands twice", lambda: sc.compile([vector, vector], vector), ArgumentError, ["twice", "vector"], True),
    ("input that is no variable", lambda: sc.compile([3], vector), GraphTypeError, ["symbolic variable", "int 3"], False),
    ("input that is not in a list", lambda: sc.compile(vector, vector), GraphTypeError, ["list or tuple", "[x]"], False),
    ("shared variable as an input", lambda: sc.compile([state], state), GraphTypeError, ["shared variable", "givens"], False),
    ("constant as an input", lambda: sc.compile([T.constant(1.0)], vector), GraphTypeError, ["constant"], False),
    ("output that is no variable", lambda: sc.compile([], [object()]), UserError, ["object"], False),
    ("update of a plain variable", lambda: sc.compile([vector], None, updates=[(vector, vector)]),
     GraphTypeError, ["only a shared variable", "vector", "sc.shared"], True),
    ("updates that are no pairs", lambda: sc.compile([], state, updates=[state, state + 1]), GraphTypeError,
     ["updates are pairs", "updates=[(variable, value), ...]"], False),
    ("updates that are a number", lambda: sc.compile([], state, updates=3), GraphTypeError, ["updates are pairs", "3"], False),
    ("givens that are a text", lambda: sc.compile([vector], vector, givens="ab"), GraphTypeError, ["givens are pairs", "'ab'"],
     False),
    ("a given of three", lambda: sc.compile([vector], vector, givens=[(vector, vector, 1)]), GraphTypeError, ["givens are pairs"],
     False),
    ("update of one variable twice", lambda: sc.compile([], None, updates=[(state, state + 1), (state, state + 2)]),
     ArgumentError, ["'state'", "twice"], True),
    ("update of another dtype", lambda: sc.compile([], None, updates=[(state, state.astype("float64"))]),
     GraphTypeError, ["'state'", "float64", "float32", "T.cast"], True),
    ("update of another rank", lambda: sc.compile([], None, updates=[(state, state.sum())]),
     GraphTypeError, ["'state'", "rank", "float32[]", "float32[?]"], True),
    ("given for an input", lambda: sc.compile([vector], vector, givens={vector: zeros(2)}),
     ArgumentError, ["'vector'", "givens"], True),
    ("given of another type", lambda: sc.compile([matrix], vector.sum(), givens={vector: matrix}),
     GraphTypeError, ["'vector'", "float32[?,?]", "float32[?]"], True),
    ("value of another rank for a shared variable", lambda: state.set_value(zeros(2, 2)),
     InputTypeError, ["'state'", "rank 1"], False),
    ("value of another dtype for a shared variable", lambda: state.set_value(np.array([0.1])),
     InputTypeError, ["'state'", "float64"], False),
    ("value of another size for a sized shared variable",
     lambda: sc.shared(zeros(3), "sized", shape=(3,)).set_value(zeros(4)), ShapeError, ["'sized'", "size 3", "size 4"], False),
    ("symbolic value of a shared variable", lambda: sc.shared(vector), GraphTypeError, ["symbolic"], False),
    ("text as the value of a shared variable", lambda: sc.shared("abc"), GraphTypeError, ["numeric"], False),
    ("unknown mode", lambda: sc.compile([], state, mode="fastest"), ArgumentError, ["'fastest'", "fast_run"], False),
    ("unknown device", lambda: sc.compile([], state, device="tpu"), ArgumentError, ["'tpu'", "cpu"], False),
    ("unknown setting", lambda: setattr(sc.config, "speed", 1), AttributeError, ["'speed'", "floatX"], False),
    ("wrong value of a setting", lambda: setattr(sc.config, "floatX", "int8"), ArgumentError, ["floatX", "int8", "float32"], False),
    ("filters of the wrong rank", lambda: nnet.conv2d(x4, matrix), UserError, ["4"], True),
    ("channels that do not match", lambda: nnet.conv2d(T.tensor4("image", shape=(None, 3, 8, 8)), T.tensor4(shape=(4, 2, 3, 3))),
     ShapeError, ["3", "2"], True),
    ("channels that do not match at run time",
     lambda: sc.compile([x4, w4], nnet.conv2d(x4, w4))(zeros(1, 3, 8, 8), zeros(4, 2, 3, 3)), ShapeError, ["3", "2"], True),
    ("kernel larger than the image", lambda: nnet.conv2d(T.tensor4(shape=(1, 1, 4, 4)), T.tensor4(shape=(1, 1, 5, 3))),
     ShapeError, ["5", "4"], True),
    ("kernel larger than the image at run time",
     lambda: sc.compile([x4, w4], nnet.conv2d(x4, w4))(zeros(1, 1, 4, 4), zeros(1, 1, 3, 6)), ShapeError, ["6", "4"], True),
    ("convolution of integers", lambda: nnet.conv2d(T.itensor4("image"), T.itensor4()), GraphTypeError, ["int32"], True),
    ("unknown border mode", lambda: nnet.conv2d(x4, w4, border_mode="sane"), UserError, ["sane", "half"], False),
    ("negative padding", lambda: nnet.conv2d(x4, w4, border_mode=-1), UserError, ["-1"], False),
    ("stride of zero", lambda: nnet.conv2d(x4, w4, subsample=(0, 1)), UserError, ["0"], False),
    ("unknown keyword of conv2d", lambda: nnet.conv2d(x4, w4, striding=2), TypeError, ["striding"], False),
    ("groups that do not divide", lambda: nnet.conv2d(T.tensor4(shape=(1, 3, 8, 8)), T.tensor4(shape=(4, 1, 3, 3)), num_groups=2),
     ShapeError, ["3", "2"], True),
    ("bias of the wrong size, fused", lambda: sc.compile([x4, w4, vector], nnet.relu(nnet.conv2d(x4, w4) +
     vector.dimshuffle("x", 0, "x", "x")))(
        zeros(1, 1, 4, 4), zeros(5, 1, 3, 3), zeros(4)), ShapeError, ["5", "4"], True),
    ("inner sizes of a product", lambda: sc.compile([matrix], T.dot(matrix, matrix))(zeros(2, 3)), ShapeError, ["3", "2"], True),
    ("reshape to another count", lambda: sc.compile([matrix], matrix.reshape((4, 4)))(zeros(3, 5)), ShapeError, ["15", "4"], True),
    ("axis out of range", lambda: matrix.sum(axis=2), UserError, ["2"], False),
    ("axis given twice", lambda: matrix.sum(axis=(0, 0)), UserError, ["0"], False),
    ("index out of range", lambda: sc.compile([vector], vector[5])(zeros(3)), IndexRangeError, ["5", "3"], True),
    ("integer array out of range", lambda: sc.compile([vector], vector[np.array([0, 7])])(zeros(3)), IndexRangeError, [], True),
    ("concatenation of other sizes", lambda: sc.compile([matrix, x4], T.concatenate([matrix, x4[0, 0]], axis=1))(zeros(2,
     2), zeros(1, 1, 3, 3)),
     ShapeError, ["2", "3"], True),
    ("concatenation of other ranks", lambda: T.concatenate([matrix, vector]), UserError, ["?,?", "concatenate"], False),
    ("label out of range", lambda: sc.compile([matrix], nnet.softmax_cross_entropy(matrix, T.constant(np.array([9]))))(zeros(1, 3)),
     IndexRangeError, [], True),
    ("truth value of a variable", lambda: bool(vector.sum() > 0), GraphTypeError, ["truth value", "where"], False),
]


@pytest.mark.parametrize(("action", "error", "pieces", "shows_line"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_a_wrong_use_is_one_clear_error(action, error, pieces, shows_line):
    with pytest.raises(error) as caught:
        action()
    text = str(caught.value)
    assert len(text.splitlines()) <= 40
    for piece in pieces:
        assert re.search(rf"(?<![\w.]){re.escape(piece)}(?![\w])", text) or piece in text, f"{piece!r} is not in: {text}"
    if shows_line:
        assert f"{__file__}:" in text, text


def test_the_process_and_state_are_sound_after_every_error():
    before = state.get_value()
    for _, action, error, _, _ in CASES:
        with pytest.raises(error):
            action()
    np.testing.assert_array_equal(state.get_value(), before)
    assert sc.compile([vector], vector * 2)(zeros(2) + 1).tolist() == [2, 2]
