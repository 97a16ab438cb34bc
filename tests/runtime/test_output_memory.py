"""Large outputs lie in memory that is used again, but never while anything still looks at it."""
from __future__ import annotations

import gc
import pickle
import weakref

import numpy as np
import pytest

import symconv as sc
import symconv.tensor as T
from symconv.runtime.outputs import ALIGNMENT, LARGE_BYTES, output_maker

SIZE = LARGE_BYTES  # floats: four times as large as the limit


def doubled():
    x = T.vector("x")
    return sc.compile([x], x * 2)


def filled(value):
    return np.full(SIZE, value, np.float32)


HOLDERS = {
    "the array": lambda y: y,
    "a view": lambda y: y[5:9],
    "a view of a view": lambda y: y[::2][3:4].reshape(1, 1),
    "a memoryview": lambda y: memoryview(y),
    "an array over its buffer": lambda y: np.frombuffer(y, np.float32),
    "DLPack": lambda y: np.from_dlpack(y),
    "a subclass": lambda y: y.view(np.matrix),
}


@pytest.mark.parametrize("hold", HOLDERS.values(), ids=HOLDERS.keys())
def test_what_looks_at_a_result_keeps_its_values(hold):
    function = doubled()
    held = hold(function(filled(3)))
    for value in range(5):
        np.testing.assert_array_equal(function(filled(value)), 2.0 * value)
    np.testing.assert_array_equal(np.asarray(held), 6.0)


def test_the_memory_of_a_result_that_is_gone_is_used_again():
    make = output_maker((1000, 1000), np.dtype("float32"))
    first = make()
    address = first.ctypes.data
    view = first[2:]
    del first
    assert make().ctypes.data != address
    del view
    gc.collect()
    addresses = {make().ctypes.data for _ in range(4)}
    assert address in addresses
    assert len(addresses) <= 2


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "bool", "complex64"])
def test_results_are_plain_writable_aligned_arrays(dtype):
    array = output_maker((3, SIZE), np.dtype(dtype))()
    assert type(array) is np.ndarray
    assert array.dtype == dtype
    assert array.shape == (3, SIZE)
    assert array.flags.writeable
    assert array.flags.c_contiguous
    assert array.ctypes.data % ALIGNMENT == 0
    array[...] = 1
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(array)), array)


def test_bfloat16_results_have_their_type():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    array = output_maker((SIZE,), np.dtype(ml_dtypes.bfloat16))()
    array[...] = 1.5
    assert array.dtype == ml_dtypes.bfloat16
    assert (array.astype(np.float32) == 1.5).all()


def test_a_result_outlives_its_function():
    function = doubled()
    result = function(filled(4))
    gone = weakref.ref(function)
    del function
    gc.collect()
    assert gone() is None
    np.testing.assert_array_equal(result, 8.0)


def test_state_whose_new_value_is_swapped_in_is_not_written_by_later_calls():
    state = sc.shared(filled(1), name="state")
    x = T.vector("x")
    step = sc.compile([x], state.sum(), updates=[(state, x[::-1] + state[::-1])])
    lent = []
    for number in range(4):
        step(filled(number))
        lent.append((state.get_value(borrow=True), 1.0 + sum(range(number + 1))))
    for array, wanted in lent:
        np.testing.assert_array_equal(array, wanted)
