"""Every op's reference runs on arrays that lie on a device (CuPy's, here a stand-in) and gives what it gives on NumPy's."""
from __future__ import annotations

import device_arrays
import numpy as np
import pytest
from device_arrays import Array
from op_cases import cases

from symconv.graph import Constant
from symconv.graph.traversal import toposort

_makers = cases()


def _values(outputs, given, wrap):
    """Every node's results, by the references, with leaves as `wrap` makes them."""
    values = {variable: wrap(array) for variable, array in given.items()}
    for node in toposort(outputs):
        inputs = [values[each] if each in values else wrap(each.data) for each in node.inputs]
        assert all(each in values or isinstance(each, Constant) for each in node.inputs)
        with np.errstate(all="ignore"):
            results = node.op.reference(*inputs)
        for variable, result in zip(node.outputs, results, strict=True):
            assert isinstance(result, Array) == (wrap is Array), f"{node.op} gives {type(result)}"
            values[variable] = result
    return [values[each] if each in values else wrap(each.data) for each in outputs]


@pytest.mark.parametrize("name", _makers)
def test_values(name):
    case = _makers[name]()
    given = dict(zip(case.inputs, case.arrays, strict=True))
    wanted = _values(case.outputs, given, np.asarray)
    for found, expected in zip(_values(case.outputs, given, Array), wanted, strict=True):
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found.get(), expected)


@pytest.mark.parametrize("pulls", [np.asarray, np.array, float, lambda x: np.add(x, np.ones(3)), lambda x: np.add.reduce(x),
                                   lambda x: np.matmul(x, x), lambda x: np.zeros(3).__setitem__(slice(None), x),
                                   lambda x: x.__setitem__(slice(None), np.ones(3)), lambda x: x.newbyteorder()])
def test_the_stand_in_refuses_what_cupy_refuses(pulls):
    with pytest.raises((TypeError, ValueError, AttributeError)):
        pulls(Array(np.ones(3)))


def test_the_stand_in_passes_on_what_cupy_has():
    x = Array(np.arange(6.0).reshape(2, 3))
    assert isinstance(np.sum(x, axis=0), Array)
    assert isinstance(device_arrays.zeros(3) + np.exp(x)[0], Array)
    np.testing.assert_array_equal((x @ x.T).get(), x.get() @ x.get().T)
