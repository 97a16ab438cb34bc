"""The network and its functions, written as a user writes them."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import symconv as sc
import symconv.tensor as T
from symconv.tensor import nnet

Array = np.ndarray[Any, Any]
FILTERS = (20, 40)
HIDDEN = 64
MOMENTUM = 0.9


@dataclass(frozen=True)
class Network:
    """The trained state and the compiled functions."""

    parameters: list[sc.SharedVariable]
    learning_rate: sc.SharedVariable
    train: sc.Function
    predict: sc.Function


def make_parameters(generator: np.random.Generator) -> list[sc.SharedVariable]:
    """Weights and biases of two convolutions and two dense layers (He's initialisation)."""
    shapes = {"W1": (FILTERS[0], 1, 3, 3), "W2": (FILTERS[1], FILTERS[0], 3, 3),
              "W3": (FILTERS[1] * 49, HIDDEN), "W4": (HIDDEN, 10)}
    parameters = []
    for number, (name, shape) in enumerate(shapes.items(), 1):
        fan_in = int(np.prod(shape[1:])) if len(shape) == 4 else shape[0]
        n_outputs = shape[0] if len(shape) == 4 else shape[1]
        weights = generator.normal(0, np.sqrt(2 / fan_in), shape).astype("float32")
        parameters += [sc.shared(weights, name, shape=shape),
                       sc.shared(np.zeros(n_outputs, "float32"), f"b{number}", shape=(n_outputs,))]
    return parameters


def scores(images: Any, parameters: list[sc.SharedVariable]) -> Any:
    """The score of every class for every image."""
    W1, b1, W2, b2, W3, b3, W4, b4 = parameters
    with sc.name_scope("block1"):
        h = nnet.relu(nnet.conv2d(images, W1, border_mode="half") + b1.dimshuffle("x", 0, "x", "x"))
        h = nnet.max_pool_2d(h, (2, 2))
    with sc.name_scope("block2"):
        h = nnet.relu(nnet.conv2d(h, W2, border_mode="half") + b2.dimshuffle("x", 0, "x", "x"))
        h = nnet.max_pool_2d(h, (2, 2))
    with sc.name_scope("head"):
        h = nnet.relu(T.dot(h.flatten(2), W3) + b3)
        return T.dot(h, W4) + b4


def make_network(seed: int = 0) -> Network:
    """The functions `train(images, labels)`, which returns the loss, and `predict(images)`, which returns classes."""
    parameters = make_parameters(np.random.default_rng(seed))
    learning_rate = sc.shared(np.float32(0.05), "learning_rate")
    images, labels = T.tensor4("images", shape=(None, 1, 28, 28)), T.lvector("labels")
    logits = scores(images, parameters)
    loss = nnet.softmax_cross_entropy(logits, labels).mean()
    loss.name = "loss"
    updates = sc.optimizers.momentum(loss, parameters, learning_rate, MOMENTUM)
    train = sc.compile([images, labels], loss, updates=updates, name="train")
    predict = sc.compile([images], logits.argmax(axis=1), name="predict")
    return Network(parameters, learning_rate, train, predict)
