"""Laws of convolutions: padding, flips, scales, epilogues. Graphs first; values against NumPy written out here."""
from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from rewriting import WILLING, bound, leaf, ops

import symconv.tensor as T
from symconv.graph import Variable
from symconv.graph.gradient import grad
from symconv.tensor import nnet

RNG = np.random.default_rng(11)
x, w = leaf("float64", (2, 3, 6, 5), "x"), leaf("float64", (4, 3, 3, 3), "w")
b, s, r = leaf("float64", (4,), "b"), leaf("float64", (4,), "s"), leaf("float64", (2, 4, 6, 5), "r")
VALUES = {each: RNG.normal(size=each.type.shape) for each in (x, w, b, s, r)}


def by_channel(vector: Variable) -> Variable:
    return vector.dimshuffle("x", 0, "x", "x")


def correlation(image: np.ndarray, filters: np.ndarray, low: tuple[int, int], high: tuple[int, int]) -> np.ndarray:
    padded = np.pad(image, ((0, 0), (0, 0), (low[0], high[0]), (low[1], high[1])))
    windows = np.lib.stride_tricks.sliding_window_view(padded, filters.shape[2:], axis=(2, 3))
    return np.einsum("nchwrs,kcrs->nkhw", windows, filters)


def conv(image: Variable = x, filters: Variable = w, mode: Any = "half") -> Variable:
    return nnet.conv2d(image, filters, border_mode=mode, filter_flip=False)


PLAIN = correlation(VALUES[x], VALUES[w], (1, 1), (1, 1))
B, S, R = VALUES[b][:, None, None], VALUES[s][:, None, None], VALUES[r]
BIASED = PLAIN + B

EPILOGUES = {
    "+bias": (conv() + by_channel(b), BIASED),
    "+bias+relu": (T.relu(conv() + by_channel(b)), np.maximum(BIASED, 0)),
    "+bias+residual+relu": (T.relu(conv() + by_channel(b) + r), np.maximum(BIASED + R, 0)),
    "+residual+bias": (r + conv() + by_channel(b), BIASED + R),
    "+sub+scale+bias+tanh": (T.tanh((conv() - by_channel(b)) * by_channel(s) + by_channel(b)), np.tanh((PLAIN - B) * S + B)),
    "+bias+sigmoid+mul": (nnet.silu(conv() + by_channel(b)), BIASED / (1 + np.exp(-BIASED))),
    "+mul": (conv() * 2.5, PLAIN * 2.5),
    "+gate": (r * conv(), PLAIN * R),
    "+cast:float32": (conv().astype("float32"), PLAIN.astype("float32")),
}


@pytest.mark.parametrize("text", EPILOGUES)
def test_epilogues(text: str) -> None:
    output, expected = EPILOGUES[text]
    graph, (found,), _ = bound(VALUES, [output])
    assert ops(graph) == [f"Conv{{fprop, cross-correlation, padding 1 1, {text}}}"]
    np.testing.assert_allclose(found, expected, rtol=1e-6 if "32" in text else 1e-11, atol=1e-12)


def test_two_convolutions_meet() -> None:
    other = leaf("float64", (4, 3, 1, 1), "v")
    values = {**VALUES, other: RNG.normal(size=(4, 3, 1, 1))}
    graph, (found,), _ = bound(values, [T.relu(conv() + conv(x, other))])
    assert sum("residual" in name for name in ops(graph)) == 1
    assert len(ops(graph)) == 2
    small = correlation(VALUES[x], values[other], (0, 0), (0, 0))
    np.testing.assert_allclose(found, np.maximum(PLAIN + small, 0), rtol=1e-11)


def test_a_result_with_another_reader_is_not_fused() -> None:
    y = conv()
    graph, found, log = bound(VALUES, [y + by_channel(b), y])
    assert ops(graph) == ["Conv{fprop, cross-correlation, padding 1 1}", "DimShuffle{(x, 0, x, x)}", "add"]
    assert "the convolution's result is an output too" in [each.reason for each in log.skips]
    np.testing.assert_allclose(found[0], BIASED, rtol=1e-11)
    _, _, log = bound(VALUES, [T.relu(y), T.max(y, axis=(2, 3))])
    assert "the convolution's result has 1 other reader" in [each.reason for each in log.skips]


def test_an_operand_of_another_shape_is_not_fused() -> None:
    rows = leaf("float64", (6, 1), "rows")
    _, (found,), log = bound({**VALUES, rows: np.arange(6.0)[:, None]}, [conv() + rows])
    assert any("neither by channel nor of the shape" in each.reason for each in log.skips)
    np.testing.assert_allclose(found, PLAIN + np.arange(6.0)[:, None], rtol=1e-11)


def test_the_target_may_refuse() -> None:
    target = replace(WILLING, refuse_epilogue=lambda conv, types, result, epilogue:
                     None if str(epilogue) == "+bias" else "only a bias")
    graph, (found,), log = bound(VALUES, [T.relu(conv() + by_channel(b))], target)
    assert ops(graph) == ["Conv{fprop, cross-correlation, padding 1 1, +bias}", "relu"]
    assert "only a bias" in [each.reason for each in log.skips]
    np.testing.assert_allclose(found, np.maximum(BIASED, 0), rtol=1e-11)


def test_relu_in_training_keeps_its_epilogue() -> None:
    y = T.relu(conv() + by_channel(b))
    graph, found, _ = bound(VALUES, [y.sum(), grad((y * r).sum(), b)])
    assert "Conv{fprop, cross-correlation, padding 1 1, +bias+relu}" in ops(graph)
    np.testing.assert_allclose(found[1], ((BIASED > 0) * R).sum((0, 2, 3)), rtol=1e-11)


def test_padding_goes_into_the_spec_and_its_gradients() -> None:
    padded = T.pad(x, ((0, 0), (0, 0), (1, 2), (0, 3)))
    y = conv(padded, w, "valid")
    weights = RNG.normal(size=(2, 4, 7, 6))
    cost = (y * T.constant(weights)).sum()
    graph, found, _ = bound(VALUES, [y, *grad(cost, [x, w])])
    assert [name.split(",")[0] for name in ops(graph)] == ["Conv{fprop", "Conv{dgrad", "Conv{wgrad"]
    assert all("padding 1:2 0:3" in name for name in ops(graph))
    np.testing.assert_allclose(found[0], correlation(VALUES[x], VALUES[w], (1, 0), (2, 3)), rtol=1e-11)
    for variable, gradient in zip((x, w), found[1:], strict=True):
        direction = RNG.normal(size=variable.type.shape)
        moved = {**VALUES, variable: direction}
        change = (correlation(moved[x], moved[w], (1, 0), (2, 3)) * weights).sum()  # linear in each
        np.testing.assert_allclose((gradient * direction).sum(), change, rtol=1e-10)


@pytest.mark.parametrize("value", [1.0, np.nan])
def test_padding_with_another_number_stays(value: float) -> None:
    y = conv(T.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)), constant_values=value), w, "valid")
    assert any(name.startswith("Pad") for name in ops(bound(VALUES, [y])[0]))


def test_padding_of_channels_stays() -> None:
    y = conv(T.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1))), w, "valid")
    wide = conv(T.pad(x[:, :2], ((0, 0), (0, 1), (0, 0), (0, 0))), w, "valid")
    assert not any(name.startswith("Pad") for name in ops(bound(VALUES, [y])[0]))
    assert any(name.startswith("Pad") for name in ops(bound(VALUES, [wide])[0]))


def test_flips_go_into_the_mode_and_its_gradients() -> None:
    y = conv(x, w[:, :, ::-1, ::-1])
    graph, found, _ = bound(VALUES, [y, *grad((y * r).sum(), [x, w])])
    assert [name.split(",")[:2] for name in ops(graph)] == [["Conv{fprop", " convolution"], ["Conv{dgrad", " convolution"],
                                                            ["Conv{wgrad", " convolution"]]
    np.testing.assert_allclose(found[0], correlation(VALUES[x], VALUES[w][:, :, ::-1, ::-1], (1, 1), (1, 1)), rtol=1e-11)
    direction = RNG.normal(size=(4, 3, 3, 3))
    change = (correlation(VALUES[x], direction[:, :, ::-1, ::-1], (1, 1), (1, 1)) * R).sum()
    np.testing.assert_allclose((found[2] * direction).sum(), change, rtol=1e-10)


def test_a_flip_of_one_axis_stays() -> None:
    assert len(ops(bound(VALUES, [conv(x, w[:, :, ::-1])])[0])) == 2


def test_scale_of_constants_goes_into_the_weights() -> None:
    wc, sc, bc = (T.constant(VALUES[each]) for each in (w, s, b))
    y = (conv(x, wc) - by_channel(bc)) / by_channel(sc) + by_channel(bc)
    graph, (found,), _ = bound({x: VALUES[x]}, [y])
    assert ops(graph) == ["Conv{fprop, cross-correlation, padding 1 1, +bias}"]
    np.testing.assert_allclose(found, (PLAIN - B) / S + B, rtol=1e-9)


def test_batch_normalization_with_constants_is_one_convolution() -> None:
    gamma, beta, mean, var = (T.constant(value) for value in (VALUES[s], VALUES[b], VALUES[b] * 2, VALUES[s] ** 2))
    y = T.relu(nnet.batch_normalization_test(conv(x, T.constant(VALUES[w])), gamma, beta, mean, var, axes="spatial"))
    graph, (found,), _ = bound({x: VALUES[x]}, [y])
    assert ops(graph) == ["Conv{fprop, cross-correlation, padding 1 1, +bias+relu}"]
    np.testing.assert_allclose(found, np.maximum((PLAIN - 2 * B) * S / np.sqrt(S ** 2 + 1e-4) + B, 0), rtol=1e-9, atol=1e-12)


def test_scale_goes_into_the_weights_where_the_kernel_cannot_scale() -> None:
    target = replace(WILLING, refuse_epilogue=lambda *known: "no scale" if "scale" in str(known[-1]) else None)
    graph, (found,), _ = bound(VALUES, [(conv() + by_channel(b)) * by_channel(s)], target)
    assert ops(graph)[-1] == "Conv{fprop, cross-correlation, padding 1 1, +bias}"
    np.testing.assert_allclose(found, BIASED * S, rtol=1e-10)


def test_scale_of_inputs_costs_less_in_the_kernel() -> None:
    _, _, log = bound(VALUES, [conv() * by_channel(s)])
    assert any("costs less inside the convolution's kernel" in each.reason for each in log.skips)
