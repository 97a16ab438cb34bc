"""Whole functions whose convolutions cuDNN runs: on the emulator, with a stand-in in cuDNN's place."""
from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from cudnn_stand_in import NumPyCudnn

import symconv as sc
import symconv.tensor as T
from symconv.codegen.cuda.kernel import CudnnLaunch
from symconv.codegen.cudnn import plan_list
from symconv.codegen.cudnn.devices import known_device
from symconv.codegen.cudnn.implementation import CudnnConvolution
from symconv.codegen.cudnn.plan_list import stand_in
from symconv.config import config
from symconv.demo.network import make_network
from symconv.errors import BackendError
from symconv.runtime import measure
from symconv.runtime.devices import find
from symconv.runtime.devices.emulator import PROPERTIES, EmulatorDevice
from symconv.tensor.nnet import conv2d, dnn, relu

EMULATOR = "emulator"
FORCED = {"dnn__enabled": True, "emulator__checked": True}


def arrays(*shapes, dtype="float32", seed=0):
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(shape).astype(dtype) for shape in shapes]


def layer(x, w, b):
    """relu(conv + bias), a chain that cuDNN fuses."""
    return relu(conv2d(x, w, border_mode="half", filter_flip=False) + b.dimshuffle("x", 0, "x", "x"))


def variables(dtype="float32"):
    return T.tensor4("x", dtype), T.tensor4("w", dtype), T.vector("b", dtype)


@pytest.mark.parametrize("dtype", ["float32", "float16", "float64"])
def test_a_layer_gives_what_the_cpu_gives(dtype):
    given = arrays((2, 3, 7, 6), (4, 3, 3, 3), (4,), dtype=dtype)
    x, w, b = variables(dtype)
    cudnn = NumPyCudnn()
    with stand_in(cudnn), config.change(**FORCED):
        function = sc.compile([x, w, b], layer(x, w, b), device=EMULATOR)
        found = function(*given)
        explained = function.explain()
    wanted = sc.compile([x, w, b], layer(x, w, b), mode="reference")(*given)
    np.testing.assert_allclose(found.astype(np.float64), wanted.astype(np.float64), rtol=4e-3 if dtype == "float16" else 1e-5,
                               atol=4e-3 if dtype == "float16" else 1e-5)
    assert set(cudnn.ran) == {"first"}
    assert cudnn.launches[0].problem.epilogue == "+bias+relu"
    assert "runs cudnn" in explained
    assert explained.count("cuDNN's plan first") == 1


def test_a_plan_that_is_refused_when_it_runs_is_passed_over_for_the_next():
    given = arrays((2, 3, 7, 6), (4, 3, 3, 3), (4,))
    x, w, b = variables()
    cudnn = NumPyCudnn(("first", 64), ("second", 4096), refused=("first",))
    with stand_in(cudnn), config.change(**FORCED):
        function = sc.compile([x, w, b], layer(x, w, b), device=EMULATOR)
        for _ in range(3):
            found = function(*given)
        explained = function.explain()
    np.testing.assert_allclose(found, sc.compile([x, w, b], layer(x, w, b))(*given), rtol=1e-4, atol=1e-4)
    assert cudnn.ran == ["second"] * 4  # the trial and three calls
    assert "refused when it ran: first, padding as is: first does not run on this machine" in explained


def test_after_the_last_plan_the_best_generated_kernel_runs():
    given = arrays((2, 3, 7, 6), (4, 3, 3, 3), (4,))
    x, w, b = variables()
    cudnn = NumPyCudnn(("first", 0), ("second", 0), refused=("first", "second"))
    with stand_in(cudnn), config.change(conv__implementation="cudnn"):
        function = sc.compile([x, w, b], layer(x, w, b), device=EMULATOR)
        function.prepare(*(each.shape for each in given))
    with stand_in(cudnn):
        for _ in range(2):
            found = function(*given)
        explained = function.explain()
    np.testing.assert_allclose(found, sc.compile([x, w, b], layer(x, w, b))(*given), rtol=1e-4, atol=1e-4)
    assert cudnn.ran == []
    assert "cuDNN: no, every plan was refused when it ran: first, padding as is: first does not run" in explained
    assert "runs conv_" in explained


def test_with_dnn_required_a_refusal_when_it_runs_is_one_error():
    given = arrays((2, 3, 7, 6), (4, 3, 3, 3), (4,))
    x, w, b = variables()
    with stand_in(NumPyCudnn(refused=("first",))), config.change(**FORCED):
        function = sc.compile([x, w, b], layer(x, w, b), device=EMULATOR)
        with pytest.raises(BackendError, match=r"first does not run on this machine[\s\S]*where: .*test_cudnn_functions"):
            function(*given)


@pytest.fixture
def cudnn_is_fastest(monkeypatch):
    monkeypatch.setattr(CudnnConvolution, "estimate", lambda *_: 0.0)


@pytest.mark.usefixtures("cudnn_is_fastest")
def test_a_problem_that_no_plan_takes_goes_to_a_generated_kernel():
    given = arrays((2, 3, 7, 6), (4, 3, 3, 3), (4,))
    x, w, b = variables()
    with stand_in(NumPyCudnn(("first", 64))), config.change(dnn__workspace_bytes=8):
        function = sc.compile([x, w, b], layer(x, w, b), device=EMULATOR)
        found = function(*given)
        assert "cuDNN: no, every plan wants too much workspace" in function.explain()
    np.testing.assert_allclose(found, sc.compile([x, w, b], layer(x, w, b))(*given), rtol=1e-4, atol=1e-4)


def test_what_cudnn_refuses_is_one_error_where_it_is_required():
    x, w, _ = variables()
    given = arrays((2, 3, 7, 6), (4, 3, 3, 3))
    with stand_in(NumPyCudnn()), config.change(dnn__enabled=True):
        function = sc.compile([x, w], dnn.dnn_conv(x, w, precision="float64"), device=EMULATOR)
        with pytest.raises(BackendError, match=r"cuDNN refuses a convolution[\s\S]*summed as usual"):
            function(*given)
    with config.change(dnn__enabled=True), pytest.raises(BackendError, match="the emulator runs generated kernels only"):
        sc.compile([x, w], conv2d(x, w), device=EMULATOR)


def test_zero_size_problems_do_not_reach_it():
    x, w, _ = variables()
    cudnn = NumPyCudnn()
    with stand_in(cudnn), config.change(dnn__enabled=True):
        found = sc.compile([x, w], conv2d(x, w), device=EMULATOR)(*arrays((0, 3, 7, 6), (4, 3, 3, 3)))
    assert found.shape == (0, 4, 5, 4)
    assert not cudnn.launches


def test_an_epilogue_that_cudnn_does_not_take_stays_outside_where_it_is_required():
    x, w, b = variables()
    given = arrays((2, 3, 7, 6), (4, 3, 3, 3), (4,))
    expression = T.exp(conv2d(x, w) + b.dimshuffle("x", 0, "x", "x"))
    with stand_in(NumPyCudnn()), config.change(**FORCED):
        function = sc.compile([x, w, b], expression, device=EMULATOR)
        found = function(*given)
        assert function.explain().count("runs cudnn") == 1
    np.testing.assert_allclose(found, sc.compile([x, w, b], expression)(*given), rtol=1e-4)


@pytest.mark.parametrize("enabled", [False, "auto"])
def test_explain_says_why_it_is_not_cudnn(enabled):
    x, w, _ = variables()
    with config.change(dnn__enabled=enabled):
        function = sc.compile([x, w], conv2d(x, w), device=EMULATOR)
        function(*arrays((2, 3, 7, 6), (4, 3, 3, 3)))
        text = function.explain()
    reason = "config.dnn.enabled is False" if enabled is False else "the emulator runs generated kernels only"
    assert text.count(f"cuDNN: no, {reason}") == 1
    assert f"not cudnn: {reason}" not in text


def network(seed=0):
    """Two convolutions, pooling and a dense layer, its cost, and its state, trained by plain gradient descent."""
    w1, w2, w3, b1 = (sc.shared(array * 0.3, name=name) for array, name in
                      zip(arrays((4, 1, 3, 3), (6, 4, 3, 3), (54, 3), (4,), seed=seed), ["w1", "w2", "w3", "b1"], strict=True))
    x, y = T.tensor4("x"), T.lvector("y")
    hidden = relu(conv2d(x, w1, border_mode="half") + b1.dimshuffle("x", 0, "x", "x"))
    hidden = relu(conv2d(hidden, w2, subsample=(2, 2), border_mode=1))
    cost = T.nnet.categorical_crossentropy(T.nnet.softmax(hidden.flatten(2).dot(w3)), y).mean()
    state = [w1, w2, w3, b1]
    updates = [(each, each - 0.1 * gradient) for each, gradient in zip(state, sc.grad(cost, state), strict=True)]
    return [x, y], cost, updates, state


def test_a_training_step_with_cudnn_forced_follows_the_cpu():
    rng = np.random.default_rng(3)
    batches = [(rng.standard_normal((5, 1, 6, 6)).astype(np.float32), rng.integers(0, 3, 5)) for _ in range(3)]
    results = []
    for device in ("cpu", EMULATOR):
        inputs, cost, updates, state = network()
        cudnn = NumPyCudnn(("first", 0), ("second", 256), refused=("first",))
        with stand_in(cudnn), config.change(dnn__enabled=True if device == EMULATOR else "auto"):
            step = sc.compile(inputs, cost, updates=updates, device=device)
            results.append([[float(step(*batch)) for batch in batches], [each.get_value() for each in state]])
            if device == EMULATOR:
                assert {str(each.problem.kind.value) for each in cudnn.launches} == {"fprop", "dgrad", "wgrad"}
                assert step.explain().count("runs cudnn") == 5
    np.testing.assert_allclose(results[1][0], results[0][0], rtol=1e-4)
    for found, wanted in zip(results[1][1], results[0][1], strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-5)


def test_the_demos_training_step_with_cudnn_forced_follows_the_cpu():
    rng = np.random.default_rng(4)
    batch = rng.random((2, 1, 28, 28)).astype(np.float32), rng.integers(0, 10, 2)
    losses, states = [], []
    for device in ("cpu", EMULATOR):
        cudnn = NumPyCudnn()
        forced = {"dnn__enabled": True, "emulator__checked": False, "device": device} if device == EMULATOR else {}
        with stand_in(cudnn), config.change(**forced):
            made = make_network(seed=1)
            losses.append([float(made.train(*batch)) for _ in range(2)])
            states.append([each.get_value() for each in made.parameters])
        kinds = {launch.problem.kind.value for launch in cudnn.launches}
        assert kinds == ({"fprop", "dgrad", "wgrad"} if device == EMULATOR else set())
    np.testing.assert_allclose(losses[1], losses[0], rtol=1e-4)
    for found, right in zip(states[1], states[0], strict=True):
        np.testing.assert_allclose(found, right, rtol=1e-3, atol=1e-5)


class TimedGpu(EmulatorDevice):
    """A GPU whose clock tells what the test says: seconds by cuDNN's engine, and for generated kernels."""

    def __init__(self, seconds):
        super().__init__()
        gpu = known_device("h200")
        self.name, self.seconds, self.timed_engines = "cuda:0", seconds, []
        self.properties = replace(PROPERTIES, name=gpu.name, figures=gpu.text, software="told by a test")

    def time(self, actions, times=1):
        self.run(actions)
        engines = [each.args[0].plan.engine for each in actions if each.args and isinstance(each.args[0], CudnnLaunch)]
        self.timed_engines += engines
        return self.seconds[engines[0] if engines else "generated"]


def timed_choice(monkeypatch, cudnn, **seconds):
    """What runs the layer, and the device, with `selection = "measure"`."""
    device = TimedGpu(seconds)
    monkeypatch.setattr(find, "_device", lambda *_: device)
    given = arrays((2, 3, 7, 6), (4, 3, 3, 3), (4,))
    x, w, b = variables()
    with stand_in(cudnn), config.change(selection="measure", emulator__checked=False):
        function = sc.compile([x, w, b], layer(x, w, b), device="cuda")
        found = function(*given)
        text = function.explain()
    np.testing.assert_allclose(found, sc.compile([x, w, b], layer(x, w, b))(*given), rtol=1e-4, atol=1e-4)
    return text, device


@pytest.fixture
def fresh(tmp_path, monkeypatch):
    """No answer is known: neither on disk nor in this process."""
    monkeypatch.setattr(measure, "_known", {})
    with config.change(cache_dir=str(tmp_path / "cache")):
        yield


@pytest.mark.usefixtures("fresh")
def test_measuring_takes_the_fastest_plan_and_keeps_the_answer(monkeypatch):
    engines = ("slow", 0), ("gone", 0), ("quick", 64)
    cudnn = NumPyCudnn(*engines, refused=("gone",))
    text, device = timed_choice(monkeypatch, cudnn, slow=2e-3, quick=1e-3, generated=5e-3)
    assert "runs cudnn (measured 1 ms" in text
    assert "cuDNN's plan quick" in text
    assert {"slow", "quick"} == set(device.timed_engines)
    monkeypatch.setattr(measure, "_known", {})  # as another process would: only the disk knows
    plan_list._plan_list.cache_clear()
    text, device = timed_choice(monkeypatch, cudnn, slow=0.0, quick=0.0, generated=0.0)
    assert "cuDNN's plan quick" in text
    assert not device.timed_engines


@pytest.mark.usefixtures("fresh")
def test_measuring_may_find_a_generated_kernel_faster(monkeypatch):
    text, _ = timed_choice(monkeypatch, NumPyCudnn(("slow", 0), ("slower", 0)), slow=2e-3, slower=3e-3, generated=1e-3)
    assert "runs conv_" in text
    assert "not cudnn: slower (measured 2 ms" in text


@pytest.mark.usefixtures("fresh")
def test_plans_that_are_all_refused_when_timed_leave_the_generated_kernels(monkeypatch):
    text, _ = timed_choice(monkeypatch, NumPyCudnn(("first", 0), ("second", 0), refused=("first", "second")), generated=1e-3)
    assert "runs conv_" in text
    assert "cuDNN: no, it failed when it was timed: first does not run on this machine" in text


def test_a_workspace_that_finds_no_memory_is_given_up_for_a_smaller_one(monkeypatch):
    device = TimedGpu({})
    monkeypatch.setattr(find, "_device", lambda *_: device)
    device.memory_limit = 1 << 20
    given = arrays((2, 3, 7, 6), (4, 3, 3, 3), (4,))
    x, w, b = variables()
    with stand_in(NumPyCudnn(("large", 512 << 20), ("small", 0))), config.change(dnn__enabled=True, emulator__checked=False):
        function = sc.compile([x, w, b], layer(x, w, b), device="cuda")
        function(*given)
        assert "cuDNN's plan small" in function.explain()
    with stand_in(NumPyCudnn(("large", 512 << 20))), config.change(dnn__enabled=True, emulator__checked=False):
        function = sc.compile([x, w, b], layer(x, w, b), device="cuda")
        with pytest.raises(BackendError, match="too much workspace"):
            function(*given)
