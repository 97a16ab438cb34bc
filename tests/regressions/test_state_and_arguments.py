"""Values that users hand over: borrowed memory, masks, empty lists, integers that no float holds."""
from __future__ import annotations

import numpy as np
import pytest

import symconv as sc
import symconv.tensor as T
from symconv.errors import IndexRangeError, InputTypeError


@pytest.mark.parametrize("subclass", [np.memmap, np.matrix, np.recarray])
def test_borrowed_subclasses_are_not_written_to(subclass, tmp_path):
    if subclass is np.memmap:
        user = np.memmap(tmp_path / "values", dtype="float32", mode="w+", shape=(2, 2))
    else:
        user = np.zeros((2, 2), "float32").view(subclass)
    state = sc.shared(user, borrow=True)
    step = sc.compile([], updates=[(state, state + 1)])
    step()
    assert np.asarray(user).tolist() == [[0, 0], [0, 0]]
    assert state.get_value().tolist() == [[1, 1], [1, 1]]
    state.set_value(user, borrow=True)
    step()
    assert np.asarray(user).tolist() == [[0, 0], [0, 0]]


def test_a_default_is_the_value_it_had_at_compile():
    x, default = T.fvector("x"), np.ones(2, "float32")
    f = sc.compile([sc.In(x, value=default)], x + 1)
    default[:] = 5
    assert f().tolist() == [2, 2]


def test_masked_elements_are_refused():
    x = T.fvector("x")
    f = sc.compile([x], x + 1)
    with pytest.raises(InputTypeError, match="filled"):
        f(np.ma.array([1, 2], mask=[False, True], dtype="float32"))
    assert f(np.ma.array([1, 2], mask=[False, False], dtype="float32")).tolist() == [2, 3]


@pytest.mark.parametrize("dtype", ["int8", "int64", "uint64", "bool", "float32"])
def test_an_empty_list_is_an_empty_array_of_any_dtype(dtype):
    x = T.vector("x", dtype=dtype)
    answer = sc.compile([x], x[::-1])([])
    assert answer.shape == (0,)
    assert answer.dtype == dtype


@pytest.mark.parametrize(("number", "dtype", "wanted"), [
    (2**63 - 1, "int64", "float32"), (2**64 - 1, "uint64", "float32"), (2**53 + 1, "int64", "float32"),
    (2**31 - 1, "int32", "float32"), (70001, "int32", "float16"), (2049, "int16", "float16")])
def test_an_integer_that_rounds_is_refused_without_a_warning(number, dtype, wanted):
    x = T.vector("x", dtype=wanted)
    f = sc.compile([x], x[::-1])
    with pytest.raises(InputTypeError, match="lose precision"):  # (pytest makes every warning an error)
        f(np.array([number], dtype))


@pytest.mark.parametrize("number", [-2**63, 2**62, 0])
def test_integers_that_a_float_holds_are_taken(number):
    x = T.dvector("x")
    assert sc.compile([x], x[::-1])(np.array([number], "int64")).tolist() == [float(number)]


def test_a_huge_unsigned_index_does_not_count_from_the_end():
    x, i, place = T.fvector("x"), T.vector("i", dtype="uint64"), T.scalar("place", dtype="uint64")
    values = np.arange(5, dtype="float32")
    gather, single = sc.compile([x, i], x[i]), sc.compile([x, place], x[place])
    assert gather(values, np.array([0, 4], "uint64")).tolist() == [0, 4]
    for wrong in (2**64 - 1, 2**63, 5):
        with pytest.raises(IndexRangeError):
            gather(values, np.array([wrong], "uint64"))
        with pytest.raises(IndexRangeError):
            single(values, np.uint64(wrong))
