"""Mean and variance in one pass: exact beside float64, whatever the mean is; infinities, NaN, empty axes, shapes, errors."""
from __future__ import annotations

import numpy as np
import pytest
from support import evaluate, variable_for

import symconv as sc
import symconv.tensor as T
from symconv.errors import GraphTypeError
from symconv.ops.moments import Moments, moments

RNG = np.random.default_rng(2)


def compiled(array, axes):
    x = variable_for(array, known=False)
    return sc.compile([x], list(moments(x, axes)))(array)


@pytest.mark.parametrize("axes", [0, (0, 2), (0, 1, 2), (), None, -1])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_values(axes, dtype):
    array = RNG.normal(3, 2, (5, 4, 70)).astype(dtype)
    wide, chosen = array.astype("float64"), (0, 1, 2) if axes is None else axes
    x = variable_for(array)
    for found in (compiled(array, axes), evaluate(list(moments(x, axes)), {x: array})):
        for result, exact in zip(found, (wide.mean(chosen, keepdims=True), wide.var(chosen, keepdims=True)), strict=True):
            assert result.dtype == dtype
            np.testing.assert_allclose(result, exact, rtol=2e-7 if dtype == "float32" else 1e-13, atol=1e-14)


@pytest.mark.parametrize("mean", [0, 1e3, -1e6, 1e12])
def test_precision_does_not_depend_on_the_mean(mean):
    """One pass over Σx and Σx² would lose the variance: mean²/variance is up to 1e24 here."""
    array = (mean + RNG.normal(size=(3, 2000))).astype("float64" if abs(mean) > 1e5 else "float32")
    exact = array.astype("longdouble")
    found_mean, found = compiled(array, 1)
    np.testing.assert_allclose(found[:, 0], exact.var(1).astype("float64"), rtol=1e-6)
    np.testing.assert_allclose(found_mean[:, 0], exact.mean(1).astype("float64"), rtol=1e-7, atol=1e-9)


def test_an_outlier_in_front_does_no_harm():
    """The first element is what the others are measured from; one that is far off costs precision, but bounded."""
    array = RNG.normal(size=(2, 5000)).astype("float32")
    array[:, 0] = 1e6
    exact = array.astype("float64")
    np.testing.assert_allclose(compiled(array, 1)[1][:, 0], exact.var(1), rtol=1e-6)


@pytest.mark.parametrize("place", [0, 3])
@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_infinities_and_nan_as_in_two_passes(place, value):
    array = RNG.normal(size=(2, 6)).astype("float32")
    array[0, place] = value
    mean, variance = compiled(array, 1)
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(mean[:, 0], array.mean(1), rtol=1e-6)
        np.testing.assert_allclose(variance[:, 0], array.var(1), rtol=1e-6)


def test_equal_elements_have_no_variance():
    mean, variance = compiled(np.full((3, 100), 0.1, "float32"), 1)
    np.testing.assert_array_equal(variance, 0)
    np.testing.assert_array_equal(mean, np.float32(0.1))


def test_empty_axes_give_nan():
    assert all(np.isnan(each).all() and each.shape == (3, 1) for each in compiled(np.ones((3, 0), "float32"), 1))


def test_one_kernel_reads_the_data():
    x = T.tensor4("x", shape=(4, 8, 16, 16))
    function = sc.compile([x], list(moments(x, (0, 2, 3))), profile=True)
    function(np.ones((4, 8, 16, 16), "float32"))
    rows = function.profile.as_dict()["programs"][0]["steps"]
    assert [row["op"].split("{")[0] for row in rows if row["bytes"] > 8 * 8] == ["sum_sum"]


def test_mistakes_are_told():
    with pytest.raises(GraphTypeError, match="floats"):
        moments(T.lvector("x"))
    with pytest.raises(GraphTypeError, match="axes"):
        Moments((2,)).infer(T.matrix("x").type)
