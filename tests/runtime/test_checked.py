"""mode="debug" finds and names a wrong rewrite, a wrong kernel and a stray write; mode="nan_guard" finds the first bad value."""
from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from random_graphs import RandomGraph

import symconv as sc
import symconv.tensor as T
from symconv.codegen.elementwise import GeneratedElementwise
from symconv.config import config
from symconv.errors import NumericalError, WrongKernelError, WrongRewriteError
from symconv.graph import Apply
from symconv.ops.elementwise import Elementwise
from symconv.rewrites import pipeline
from symconv.rewrites.context import Context
from symconv.rewrites.rule import Answer, Phase, rule
from symconv.runtime.differences import difference
from symconv.tensor import nnet


@rule(Elementwise, scalar="tanh")
def tanh_is_its_argument(node: Apply, context: Context) -> Answer:
    return node.inputs[0] * 0.5


def planted_kernel(monkeypatch: pytest.MonkeyPatch, old: str, new: str) -> None:
    """From now on every elementwise kernel has `new` where its source should say `old`."""
    build = GeneratedElementwise.build

    def wrong(self: Any, problem: Any, target: Any) -> Any:
        kernel = build(self, problem, target)
        assert old in kernel.source
        return replace(kernel, source=kernel.source.replace(old, new))

    monkeypatch.setattr(GeneratedElementwise, "build", wrong)


@pytest.mark.parametrize("phases", ["SYMBOLIC", "BOUND"])
def test_a_wrong_rewrite_is_named_with_the_users_line(phases, monkeypatch):
    monkeypatch.setattr(pipeline, phases, (Phase("planted", (tanh_is_its_argument,)), *getattr(pipeline, phases)))
    monkeypatch.setattr(pipeline, "PIPELINE", pipeline.SYMBOLIC + pipeline.BOUND)
    x = T.vector("x")
    y = T.tanh(x) + 1  # the line that the error names
    function = sc.compile([x], y, mode="debug")
    with pytest.raises(WrongRewriteError) as caught:
        function(np.array([0.5, 1.0, 3.0], np.float32))
    text = str(caught.value)
    assert "tanh_is_its_argument" in text
    assert "planted" in text
    assert "the line that the error names" in text
    assert "3 of 3 elements; the first at [0]: 0.25 instead of 0.46" in text


def test_rewrites_that_are_right_pass():
    x = T.vector("x")
    function = sc.compile([x], [T.log(1 + T.exp(x)), T.log(T.exp(x)), (x * 2) / 2], mode="debug")
    values = np.array([-200.0, -1.0, 0.0, 200.0], np.float32)  # where the expressions as written overflow
    softplus, identity, same = function(values)
    np.testing.assert_allclose(softplus, np.logaddexp(values.astype(np.float64), 0), rtol=1e-6, atol=1e-30)
    np.testing.assert_allclose(identity, values)
    np.testing.assert_allclose(same, values)


def test_a_wrong_kernel_is_named(monkeypatch):
    planted_kernel(monkeypatch, "sinf(", "cosf(")
    x = T.vector("x")
    function = sc.compile([x], T.sin(x * 3), mode="debug")
    with pytest.raises(WrongKernelError, match=r"(?s)differs from the NumPy reference.*instead of.*node: .*test_checked.py"):
        function(np.arange(7, dtype=np.float32))


def test_a_kernel_that_writes_past_its_result_is_named(monkeypatch):
    from symconv.codegen.kernel import Kernel

    build = GeneratedElementwise.build

    def wrong(self: Any, problem: Any, target: Any) -> Kernel:
        kernel = build(self, problem, target)
        body = kernel.source.rsplit("return 0;", 1)
        assert len(body) == 2
        return replace(kernel, source="((float *)buffers[0])[9] = 7.0f; return 0;".join(body))

    monkeypatch.setattr(GeneratedElementwise, "build", wrong)
    x = T.vector("x")
    function = sc.compile([x], T.sin(x), mode="debug")
    with pytest.raises(WrongKernelError, match=r"wrote outside its results: \d bytes of result 0 and its surroundings"):
        function(np.arange(9, dtype=np.float32))


def test_a_failed_check_leaves_state_as_it_was(monkeypatch):
    planted_kernel(monkeypatch, "sinf(", "cosf(")
    state = sc.shared(np.ones(5, np.float32), name="state")
    function = sc.compile([], [], updates=[(state, T.sin(state) + state)], mode="debug")
    with pytest.raises(WrongKernelError):
        function()
    np.testing.assert_array_equal(state.get_value(), 1.0)


@pytest.mark.parametrize("seed", range(12))
def test_random_graphs_pass(seed):
    graph = RandomGraph(seed)
    function = sc.compile(list(graph.inputs), graph.outputs, mode="debug", on_unused_input="ignore")
    for found, wanted in zip(function(*graph.inputs.values()), graph.expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("mode", ["debug", "nan_guard"])
def test_a_training_step_passes_and_updates(mode):
    rng = np.random.default_rng(0)
    x, labels = T.tensor4("x"), T.ivector("labels")
    filters = sc.shared(rng.normal(size=(6, 3, 3, 3)).astype(np.float32), name="filters")
    weights = sc.shared(rng.normal(size=(6 * 16, 4)).astype(np.float32) * 0.1, name="weights")
    hidden = nnet.relu(nnet.conv2d(x, filters, border_mode="half"))
    pooled = T.signal.pool.pool_2d(hidden, (2, 2), ignore_border=True)
    loss = nnet.softmax_cross_entropy(T.dot(pooled.flatten(2), weights), labels).mean()
    gradients = sc.grad(loss, [filters, weights])
    updates = [(each, each - 0.003 * gradient) for each, gradient in zip((filters, weights), gradients, strict=True)]
    step = sc.compile([x, labels], loss, updates=updates, mode=mode)
    images, answers = rng.normal(size=(8, 3, 8, 8)).astype(np.float32), rng.integers(0, 4, 8).astype(np.int32)
    losses = [float(step(images, answers)) for _ in range(4)]
    assert losses[-1] < losses[0]


def test_nan_guard_names_the_first_bad_step():
    x = T.vector("x")
    function = sc.compile([x], T.log(x - 1) * 2, mode="nan_guard")
    np.testing.assert_allclose(function(np.array([2.0, 3.0], np.float32)), [0, 2 * np.log(2)], rtol=1e-6)
    with pytest.raises(NumericalError, match=r"(?s)NaN at \[1\].*log.*test_checked.py"):
        function(np.array([2.0, 0.5], np.float32))


def test_nan_guard_looks_at_arguments_and_at_huge_values():
    x = T.vector("x")
    function = sc.compile([x], x * 4, mode="nan_guard")
    with pytest.raises(NumericalError, match="'x' holds NaN"):
        function(np.array([np.nan], np.float32))
    with pytest.raises(NumericalError, match="an infinity"):
        function(np.array([1.0, -np.inf], np.float32))
    with config.change(nan_guard_limit=10.0), pytest.raises(NumericalError, match=r"20, beyond 10"):
        function(np.array([5.0], np.float32))


def test_differences_in_words():
    one = np.array([1.0, 2.0, np.nan, np.inf], np.float32)
    assert difference(one, one.copy()) is None
    assert difference(one, one + np.float32(1e-6)) is None
    text = difference(one, np.array([1, 2.5, np.nan, np.inf], np.float32))
    assert "1 of 4 elements; the first at [1]: 2.5 instead of 2" in str(text)
    assert difference(one, np.array([1.0, 2.0, 0.0, np.inf], np.float32)) is not None
    assert difference(one, np.array([1.0, 2.0, 0.0, 5.0], np.float32), only_finite=True) is None
    assert "instead of float32[4]" in str(difference(one, one.astype(np.float64)))
    assert difference(np.arange(5), np.array([0, 1, 2, 3, 5])) is not None
    assert difference(np.zeros(0), np.zeros(0)) is None


def test_checks_on_a_device_find_the_same(monkeypatch):
    x = T.vector("x")
    guarded = sc.compile([x], T.log(x - 1) * 2, mode="nan_guard", device="emulator")
    np.testing.assert_allclose(guarded(np.array([2.0, 3.0], np.float32)), [0, 2 * np.log(2)], rtol=1e-6)
    with pytest.raises(NumericalError, match=r"(?s)NaN at \[1\].*log.*test_checked.py"):
        guarded(np.array([2.0, 0.5], np.float32))
    state = sc.shared(np.ones(5, np.float32), name="state")
    right = sc.compile([], state.sum(), updates=[(state, T.sin(state) + state)], mode="debug", device="emulator")
    assert float(right()) == 5
    np.testing.assert_allclose(state.get_value(), 1 + np.sin(1), rtol=1e-6)
    monkeypatch.setattr(pipeline, "BOUND", (Phase("planted", (tanh_is_its_argument,)), *pipeline.BOUND))
    with pytest.raises(WrongRewriteError, match="tanh_is_its_argument"):
        sc.compile([x], T.tanh(x), mode="debug", device="emulator", name="wrong")(np.ones(3, np.float32))


def test_a_wrong_cuda_kernel_is_named_and_state_is_put_back(monkeypatch):
    from symconv.codegen.cuda.elementwise import CudaElementwise

    build = CudaElementwise.build

    def wrong(self: Any, problem: Any, target: Any) -> Any:
        plan = build(self, problem, target)
        launches = tuple(replace(each, source=each.source.replace("sinf(", "cosf(")) for each in plan.launches)
        assert launches != plan.launches
        return replace(plan, launches=launches)

    monkeypatch.setattr(CudaElementwise, "build", wrong)
    state = sc.shared(np.ones(7, np.float32), name="state")
    function = sc.compile([], [], updates=[(state, T.sin(state) + state)], mode="debug", device="emulator")
    with pytest.raises(WrongKernelError, match="differs from the NumPy reference"):
        function()
    np.testing.assert_array_equal(state.get_value(), 1.0)


ROUNDED = {
    "centred sums": lambda m: (m - m.mean(0)).sum(0),
    "a product that is 1": lambda m: T.exp(m) * T.exp(-m) - 1,
    "softmax sums to 1": lambda m: sc.grad(nnet.softmax(m).sum(), m),
    "floor": lambda m: T.floor(T.exp(T.log(T.abs(m) + 1))),
    "integers": lambda m: T.cast(T.exp(T.log(T.floor(T.abs(m)) + 1)), "int32"),
    "a switch at the threshold": lambda m: T.switch(T.exp(T.log(T.abs(m) + 1)) >= T.abs(m) + 1, m, -m),
}


@pytest.mark.parametrize("name", ROUNDED)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_what_rounding_alone_changes_is_no_fault(name, dtype):
    m = T.matrix("m", dtype)
    values = np.random.default_rng(0).normal(3, 2, (40, 30)).astype(dtype)
    assert np.isfinite(sc.compile([m], ROUNDED[name](m), mode="debug")(values)).any()  # no error was raised


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_bad_pixel_in_winograds_tiles_is_no_fault(bad):
    image = T.tensor4("image")
    filters = sc.shared(np.random.default_rng(0).normal(size=(16, 16, 3, 3)).astype(np.float32), name="filters")
    pixels = np.random.default_rng(1).normal(size=(1, 16, 24, 24)).astype(np.float32)
    pixels[0, 3, 10, 10] = bad
    result = sc.compile([image], nnet.conv2d(image, filters, border_mode="half"), mode="debug")(pixels)
    assert not np.isfinite(result).all()  # and no error was raised
