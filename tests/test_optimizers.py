"""Optimizers against their formulas in float64 and against PyTorch's; dtypes, names, errors, one kernel per parameter."""
from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import symconv as sc
import symconv.tensor as T
from symconv import optimizers
from symconv.errors import ArgumentError, GraphTypeError, ShapeError

Array = np.ndarray[Any, Any]
STEPS, RATE = 20, 0.05
RNG = np.random.default_rng(3)
START = {"W": RNG.normal(size=(4, 3)), "b": RNG.normal(size=3), "scale": np.array(0.7)}
X, Y = RNG.normal(size=(6, 4)), RNG.normal(size=(6, 3))


# ---------------------------------------------------------------------------------------------------------------------
# The formulas in NumPy: each is a generator of one parameter's steps, sent a gradient, that yields what is added


def plain_sgd(p: Array) -> Any:
    step = 0.0 * p
    while True:
        step = -RATE * (yield step)


def plain_momentum(p: Array) -> Any:
    velocity = 0.0 * p
    while True:
        velocity = 0.9 * velocity - RATE * (yield velocity)


def plain_nesterov(p: Array) -> Any:
    velocity = step = 0.0 * p
    while True:
        g = yield step
        velocity = 0.9 * velocity - RATE * g
        step = 0.9 * velocity - RATE * g


def plain_rmsprop(p: Array) -> Any:
    mean_square = step = 0.0 * p
    while True:
        g = yield step
        mean_square = 0.8 * mean_square + 0.2 * g**2
        step = -RATE * g / (np.sqrt(mean_square) + 1e-6)


def plain_adagrad(p: Array) -> Any:
    total = step = 0.0 * p
    while True:
        g = yield step
        total = total + g**2
        step = -RATE * g / (np.sqrt(total) + 1e-10)


def plain_adam(p: Array) -> Any:
    mean = mean_square = step = 0.0 * p
    t = 0
    while True:
        g = yield step
        t += 1
        mean, mean_square = 0.8 * mean + 0.2 * g, 0.95 * mean_square + 0.05 * g**2
        step = -RATE * (mean / (1 - 0.8**t)) / (np.sqrt(mean_square / (1 - 0.95**t)) + 1e-8)


CASES: dict[str, tuple[Callable[..., Any], Callable[..., Any], dict[str, float], str, dict[str, Any]]] = {
    "sgd": (optimizers.sgd, plain_sgd, {}, "SGD", {}),
    "momentum": (optimizers.momentum, plain_momentum, {"momentum": 0.9}, "SGD", {"momentum": 0.9}),
    "nesterov": (optimizers.nesterov, plain_nesterov, {"momentum": 0.9}, "SGD", {"momentum": 0.9, "nesterov": True}),
    "rmsprop": (optimizers.rmsprop, plain_rmsprop, {"rho": 0.8, "epsilon": 1e-6}, "RMSprop", {"alpha": 0.8, "eps": 1e-6}),
    "adagrad": (optimizers.adagrad, plain_adagrad, {}, "Adagrad", {}),
    "adam": (optimizers.adam, plain_adam, {"beta1": 0.8, "beta2": 0.95}, "Adam", {"betas": (0.8, 0.95)}),
    "adamw": (optimizers.adamw, plain_adam, {"beta1": 0.8, "beta2": 0.95, "weight_decay": 0.3}, "AdamW",
              {"betas": (0.8, 0.95), "weight_decay": 0.3}),
}
STATES = {"sgd": [], "momentum": ["velocity"], "nesterov": ["velocity"], "rmsprop": ["mean_square"],
          "adagrad": ["sum_of_squares"], "adam": ["mean", "mean_square"], "adamw": ["mean", "mean_square"]}


def gradients_of(state: dict[str, Array]) -> dict[str, Array]:
    """The gradients of mean((x·W·scale + b - y)²), written out."""
    product = X @ state["W"]
    error = 2 * (product * state["scale"] + state["b"] - Y) / Y.size
    return {"W": X.T @ error * state["scale"], "b": error.sum(0), "scale": (error * product).sum()}


def model(dtype: str) -> tuple[list[Any], Any]:
    parameters = [sc.shared(value.astype(dtype), name, shape=value.shape) for name, value in START.items()]
    W, b, scale = parameters
    return parameters, T.square(T.dot(T.constant(X.astype(dtype)), W) * scale + b - T.constant(Y.astype(dtype))).mean()


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_twenty_steps_are_those_of_the_formulas(name: str, dtype: str) -> None:
    optimizer, plain, options, _, _ = CASES[name]
    parameters, cost = model(dtype)
    step = sc.compile([], updates=optimizer(cost, parameters, learning_rate=RATE, **options))
    state = {key: value.copy() for key, value in START.items()}
    rules = {key: plain(value) for key, value in state.items()}
    for rule in rules.values():
        next(rule)
    for _ in range(STEPS):
        step()
        gradients, decay = gradients_of(state), options.get("weight_decay", 0.0)
        state = {key: value * (1 - RATE * decay) + rules[key].send(gradients[key]) for key, value in state.items()}
    for parameter in parameters:
        assert parameter.get_value().dtype == dtype
        assert np.abs(state[parameter.name] - START[parameter.name]).max() > 0.01, "nothing moved"
        np.testing.assert_allclose(parameter.get_value(), state[parameter.name], rtol=1e-10 if dtype == "float64" else 2e-4)


@pytest.mark.parametrize("name", CASES)
def test_twenty_steps_are_those_of_pytorch(name: str) -> None:
    torch = pytest.importorskip("torch")
    optimizer, _, options, peer, peer_options = CASES[name]
    parameters, cost = model("float64")
    step = sc.compile([], updates=optimizer(cost, parameters, learning_rate=RATE, **options))
    W, b, scale = tensors = [torch.tensor(value, requires_grad=True) for value in START.values()]
    rule = getattr(torch.optim, peer)(tensors, lr=RATE, **peer_options)
    for _ in range(STEPS):
        step()
        rule.zero_grad()
        ((torch.tensor(X) @ W * scale + b - torch.tensor(Y))**2).mean().backward()
        rule.step()
    for parameter, tensor in zip(parameters, tensors, strict=True):
        np.testing.assert_allclose(parameter.get_value(), tensor.detach().numpy(), rtol=1e-9)


@pytest.mark.parametrize("name", CASES)
def test_one_elementwise_step_for_each_parameter(name: str) -> None:
    optimizer, _, options, _, _ = CASES[name]
    parameters = [sc.shared(np.ones(shape, "float32"), f"p{number}", shape=shape)
                  for number, shape in enumerate([(5, 7), (40,), (2, 3, 4)])]
    inputs = [T.tensor(f"g_{each.name}", "float32", each.static_shape) for each in parameters]
    rate = T.scalar("rate", "float64")
    step = sc.compile([*inputs, rate], updates=optimizer(inputs, parameters, learning_rate=rate, **options), profile=True)
    step(*(np.ones(each.static_shape, "float32") for each in inputs), 0.1)
    (program,) = step.profile.as_dict()["programs"]
    large = [row for row in program["steps"] if row["bytes"] > 16]
    assert len(large) == len(parameters), [row["name"] for row in program["steps"]]
    assert len(program["steps"]) <= len(parameters) + 4, "beside them only a few scalars"


@pytest.mark.parametrize("name", CASES)
def test_states_are_named_and_shaped_after_the_parameters(name: str) -> None:
    optimizer, _, _, _, _ = CASES[name]
    named, nameless = sc.shared(np.ones((2, 3), "float32"), "W", shape=(2, 3)), sc.shared(np.ones(4, "float64"))
    updates = optimizer([T.zeros((2, 3)), T.zeros(4)], [named, nameless], learning_rate=0.1)
    states = [state for state, _ in updates if state not in (named, nameless) and state.name != "adam_step"]
    kinds = STATES[name]
    assert [state.name for state in states] == [f"{kind}_{owner}" for owner in ("W", "1") for kind in kinds]
    assert [state.type for state in states] == [named.type] * len(kinds) + [nameless.type] * len(kinds)


def test_a_parameter_of_open_shape_keeps_it() -> None:
    parameter = sc.shared(np.ones(3, "float32"), "p")
    gradient = T.vector("g")
    updates = optimizers.momentum([gradient], [parameter], 1.0, momentum=0.5)
    step = sc.compile([gradient], updates=updates)
    parameter.set_value(np.zeros(5, "float32"))
    updates[0][0].set_value(np.zeros(5, "float32"))
    step(np.ones(5, "float32"))
    step(np.ones(5, "float32"))
    np.testing.assert_array_equal(parameter.get_value(), np.full(5, -2.5, "float32"))


@pytest.mark.parametrize("rate", [0.5, np.float64(0.5), np.float32(0.5), sc.shared(np.float64(0.5)), T.constant(0.5, "float16")])
@pytest.mark.parametrize("name", CASES)
def test_float32_stays_float32_whatever_the_rate(name: str, rate: Any) -> None:
    parameter = sc.shared(np.ones(2, "float32"), "p", shape=(2,))
    updates = CASES[name][0]([T.constant(np.ones(2))], [parameter], learning_rate=rate)
    assert all(new.dtype == state.dtype for state, new in updates)
    sc.compile([], updates=updates)()
    assert parameter.get_value().dtype == "float32"
    if name in ("sgd", "momentum"):
        np.testing.assert_array_equal(parameter.get_value(), [0.5, 0.5])


def test_a_shared_rate_can_change() -> None:
    rate, parameter = sc.shared(np.float32(1.0)), sc.shared(np.zeros(2, "float32"), "p")
    step = sc.compile([], updates=optimizers.sgd(parameter.sum(), [parameter], rate))
    step()
    rate.set_value(np.float32(0.25))
    step()
    np.testing.assert_array_equal(parameter.get_value(), [-1.25, -1.25])


def test_clipping_keeps_the_direction_and_bounds_the_norm() -> None:
    arrays = [RNG.normal(size=(3, 4)).astype("float32"), RNG.normal(size=5)]
    norm = np.sqrt(sum((array.astype("float64")**2).sum() for array in arrays))
    inputs = [T.matrix("a"), T.vector("b", "float64")]
    limit = T.scalar("limit")
    clip = sc.compile([*inputs, limit], [*optimizers.clip_by_global_norm(inputs, limit), optimizers.global_norm(inputs)])
    for factor in (0.1, 0.5, 1.5):
        *found, total = clip(*arrays, np.float32(factor * norm))
        np.testing.assert_allclose(total, norm, rtol=1e-12)
        for array, each in zip(arrays, found, strict=True):
            assert each.dtype == array.dtype
            np.testing.assert_allclose(each, array * min(factor, 1), rtol=1e-6)
    zeros = clip(np.zeros((3, 4), "float32"), np.zeros(5), np.float32(1.0))
    assert not any(np.any(each) for each in zeros)
    huge = clip(np.full((3, 4), 1e30, "float32"), np.zeros(5), np.float32(1.0))
    np.testing.assert_allclose(huge[0], 1 / np.sqrt(12), rtol=1e-6)


@pytest.mark.parametrize("wrong", [
    (ArgumentError, "one gradient for each", lambda p: optimizers.sgd([], [p], 0.1)),
    (ArgumentError, "given twice", lambda p: optimizers.sgd([p, p], [p, p], 0.1)),
    (ArgumentError, "learning_rate", lambda p: optimizers.sgd([p], [p], -0.1)),
    (ArgumentError, "momentum", lambda p: optimizers.momentum([p], [p], 0.1, momentum=1.0)),
    (ArgumentError, "beta2", lambda p: optimizers.adam([p], [p], beta2=1.5)),
    (ArgumentError, "weight_decay", lambda p: optimizers.adamw([p], [p], weight_decay=-1.0)),
    (ArgumentError, "no gradients", lambda p: optimizers.clip_by_global_norm([], 1.0)),
    (GraphTypeError, "one number", lambda p: optimizers.sgd([p], [p], T.vector("rate"))),
    (GraphTypeError, "shared variables", lambda p: optimizers.sgd([p], [T.vector("x")], 0.1)),
    (GraphTypeError, "float parameters", lambda p: optimizers.sgd([p], [sc.shared(np.zeros(3, "int32"))], 0.1)),
    (ShapeError, "its shape", lambda p: optimizers.sgd([T.zeros(4)], [p], 0.1)),
    (sc.errors.GradientError, "scalar|rank 0", lambda p: optimizers.sgd(p, [p], 0.1)),
], ids=lambda wrong: f"{wrong[0].__name__}:{wrong[1]}")
def test_mistakes_are_told(wrong: Any) -> None:
    error, text, build = wrong
    with pytest.raises(error, match=text):
        build(sc.shared(np.zeros(3, "float32"), "p", shape=(3,)))


def test_imports_of_the_module() -> None:
    tree = ast.parse(Path(optimizers.__file__).read_text())
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.level]
    names = {(node.module or node.names[0].name).split(".")[0] for node in imports}
    assert names <= {"dtypes", "errors", "graph", "ops", "tensor"}
