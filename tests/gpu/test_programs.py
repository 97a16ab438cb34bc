"""Whole programs on each kind of device against NumPy or the CPU: seed programs, training, random graphs, saved files, modes."""
from __future__ import annotations

import numpy as np
import pytest
import test_seed_programs as seeds
from random_graphs import RandomGraph

import symconv as sc
import symconv.tensor as T
from symconv.config import config
from symconv.demo.network import make_network
from symconv.errors import IndexRangeError, NumericalError
from symconv.tensor import nnet


@pytest.fixture(autouse=True)
def _functions_run_on_the_device(device):
    with config.change(device=device):
        yield


@pytest.fixture(autouse=True)
def _settings_put_back():
    before = config.dnn.enabled
    yield
    config.dnn.enabled = before


@pytest.mark.parametrize("program", [seeds.test_batches, seeds.test_shared_state, seeds.test_attribute_structures_chain],
                         ids=lambda program: program.__name__[5:])
def test_seed_programs(program, device):
    assert config.device == device  # where the programs' functions go, which compare what they compute with SciPy
    program()


def test_the_demos_training_step_gives_the_cpus_losses(device):
    rng, (batch, steps) = np.random.default_rng(0), (32, 4) if device == "cuda" else (1, 2)
    images, labels = rng.normal(size=(batch, 1, 28, 28)).astype(np.float32), rng.integers(0, 10, batch)
    on_device = make_network()
    with config.change(device="cpu"):
        on_cpu = make_network()
    for _ in range(steps):
        np.testing.assert_allclose(on_device.train(images, labels), on_cpu.train(images, labels), rtol=2e-4)
    for one, other in zip(on_device.parameters, on_cpu.parameters, strict=True):
        np.testing.assert_allclose(one.get_value(), other.get_value(), rtol=2e-3, atol=2e-4)
    np.testing.assert_array_equal(on_device.predict(images), on_cpu.predict(images))
    assert not [step.name for step in on_device.train.programs[-1].steps if step.kernel is None]


@pytest.mark.parametrize("seed", [101, 102, 103])
def test_random_graphs(seed):
    graph = RandomGraph(seed, size=20)
    function = sc.compile(list(graph.inputs), graph.outputs, on_unused_input="ignore")
    for _ in range(3):  # launch by launch, recorded, replayed
        for found, wanted in zip(function(*graph.inputs.values()), graph.expected, strict=True):
            np.testing.assert_allclose(found, wanted, rtol=2e-4, atol=2e-5)


def test_saved_functions(tmp_path):
    x = T.matrix("x")
    weights = sc.shared(np.eye(3, dtype=np.float32) * 2, name="weights")
    step = sc.compile([x], [sc.Out(T.dot(x, weights), on_device=True), x.sum()], updates=[(weights, weights + 1)])
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    step(values)
    step.save(tmp_path / "step")
    for loaded in (sc.load(tmp_path / "step"), sc.load(tmp_path / "step", device="cpu")):
        (state,) = loaded.shared_variables
        np.testing.assert_array_equal(state.get_value(), np.eye(3) * 2 + 1)
        (product, total) = loaded(values)
        np.testing.assert_array_equal(np.asarray(product.get() if hasattr(product, "get") else product),
                                      values @ (np.eye(3) * 2 + 1))
        assert total == 15
        np.testing.assert_array_equal(state.get_value(), np.eye(3) * 2 + 2)


def test_checking_modes():
    x = T.matrix("x")
    filters = sc.shared(np.ones((2, 1, 2, 2), np.float32), name="filters")
    y = nnet.conv2d(x.dimshuffle("x", "x", 0, 1), filters)
    updates = [(filters, filters - 0.1 * sc.grad((y * y).sum(), filters))]
    values = np.arange(12, dtype=np.float32).reshape(3, 4) / 10
    results = []
    for mode in ("fast_run", "debug", "nan_guard", "fast_compile", "reference"):
        filters.set_value(np.ones((2, 1, 2, 2), np.float32))
        results.append((sc.compile([x], y, updates=updates, mode=mode)(values), filters.get_value()))
    for result, state in results[1:]:
        np.testing.assert_allclose(result, results[0][0], rtol=1e-5)
        np.testing.assert_allclose(state, results[0][1], rtol=1e-5)
    with pytest.raises(NumericalError):
        sc.compile([x], T.log(x - 1).sum(), mode="nan_guard")(values)
    assert "on " in sc.compile([x], y).explain()


def test_an_error_in_a_recorded_call_leaves_state_as_it_was():
    x, index = T.vector("x"), T.lvector("index")
    state = sc.shared(np.zeros(2, np.float32), name="state")
    step = sc.compile([x, index], T.exp(x[index]).sum(), updates=[(state, state + x[index])])
    values = np.array([1, 2, 3], np.float32)
    for _ in range(3):
        step(values, [0, 1])
    with pytest.raises(IndexRangeError):
        step(values, [0, 7])
    np.testing.assert_array_equal(state.get_value(), [3, 6])
    step(values, [2, 2])
    np.testing.assert_array_equal(state.get_value(), [6, 9])


def test_half_precision():
    x = T.tensor("x", "float16", (4, 8))
    weights = sc.shared(np.linspace(-1, 1, 32).reshape(8, 4).astype(np.float16), name="weights")
    values = np.linspace(-2, 2, 32).reshape(4, 8).astype(np.float16)
    found = sc.compile([x], T.tanh(T.dot(x, weights)))(values)
    wanted = np.tanh(values.astype(np.float64) @ weights.get_value().astype(np.float64))
    assert found.dtype == np.float16
    np.testing.assert_allclose(found, wanted, atol=5e-3)
