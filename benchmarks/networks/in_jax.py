"""The networks in JAX's words: functions of dictionaries of arrays."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from .architectures import NETWORKS
from .parameters import EPSILON, MOMENTUM_OF_STATISTICS, Parameters


class JaxWords:
    """Words that trace JAX's functions; in training `statistics` collects the new running statistics."""

    def __init__(self, trained: Any, statistics: Any, training: bool) -> None:
        self.trained, self.statistics, self.training = trained, dict(statistics), training

    def conv(self, x: Any, name: str, filters: int, size: int, stride: int = 1, padding: int = 0, groups: int = 1,
             bias: bool = False) -> Any:
        """A convolution."""
        y = jax.lax.conv_general_dilated(x, self.trained[f"{name}.weight"], (stride, stride), [(padding, padding)] * 2,
                                         feature_group_count=groups)
        return y + self.trained[f"{name}.bias"][None, :, None, None] if bias else y

    def batch_norm(self, x: Any, name: str) -> Any:
        """By the batch's statistics in training, by the running ones else."""
        scale, shift = self.trained[f"{name}.weight"], self.trained[f"{name}.bias"]
        mean, var = self.statistics[f"{name}.mean"], self.statistics[f"{name}.var"]
        if self.training:
            old_mean, old_var, count = mean, var, x.size // x.shape[1]
            mean = x.mean((0, 2, 3))
            var = jnp.square(x - mean[None, :, None, None]).mean((0, 2, 3))
            share = MOMENTUM_OF_STATISTICS
            self.statistics[f"{name}.mean"] = (1 - share) * old_mean + share * mean
            self.statistics[f"{name}.var"] = (1 - share) * old_var + share * count / (count - 1) * var
        factor = scale * jax.lax.rsqrt(var + EPSILON)
        return (x - mean[None, :, None, None]) * factor[None, :, None, None] + shift[None, :, None, None]

    def dense(self, x: Any, name: str, units: int) -> Any:
        """x·weight + bias."""
        return x @ self.trained[f"{name}.weight"] + self.trained[f"{name}.bias"]

    def max_pool(self, x: Any, size: int, stride: int, padding: int = 0) -> Any:
        """Maxima of square windows."""
        pads = [(0, 0), (0, 0), (padding, padding), (padding, padding)]
        return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 1, size, size), (1, 1, stride, stride), pads)

    def relu(self, x: Any) -> Any:
        """max(x, 0)."""
        return jax.nn.relu(x)

    def relu6(self, x: Any) -> Any:
        """min(max(x, 0), 6)."""
        return jax.nn.relu6(x)

    def tanh(self, x: Any) -> Any:
        """tanh x."""
        return jnp.tanh(x)

    def flatten(self, x: Any) -> Any:
        """All axes but the first joined."""
        return x.reshape(x.shape[0], -1)

    def mean_of_pixels(self, x: Any) -> Any:
        """The mean over the image."""
        return x.mean((2, 3))

    def channels(self, x: Any) -> int:
        """How many channels x has."""
        return int(x.shape[1])


def inference(network: str, parameters: Parameters, images: Any) -> Callable[[], Any]:
    """A call that computes the scores. The parameters are arguments, as JAX's users pass them."""
    run = jax.jit(lambda trained, statistics, x: NETWORKS[network](JaxWords(trained, statistics, False), x))
    trained, statistics, x = jax.device_put((parameters.trained, parameters.statistics, images))
    return lambda: jax.block_until_ready(run(trained, statistics, x))


def training_step(network: str, parameters: Parameters, images: Any, labels: Any, learning_rate: float,
                  momentum: float) -> Callable[[], Any]:
    """One jitted step of SGD whose state is given away to the next; returns the loss."""
    def loss_of(trained: Any, statistics: Any, x: Any, y: Any) -> Any:
        words = JaxWords(trained, statistics, True)
        logarithms = jax.nn.log_softmax(NETWORKS[network](words, x))
        return -jnp.take_along_axis(logarithms, y[:, None], 1).mean(), words.statistics

    def step(state: Any, x: Any, y: Any) -> Any:
        trained, statistics, velocity = state
        (loss, statistics), gradients = jax.value_and_grad(loss_of, has_aux=True)(trained, statistics, x, y)
        velocity = jax.tree.map(lambda v, g: momentum * v + g, velocity, gradients) if momentum else velocity
        trained = jax.tree.map(lambda p, v: p - learning_rate * v, trained, velocity if momentum else gradients)
        return loss, (trained, statistics, velocity)

    run = jax.jit(step, donate_argnums=0)
    zeros = {name: 0 * array for name, array in parameters.trained.items()} if momentum else {}
    held = {"state": jax.tree.map(jnp.array, (parameters.trained, parameters.statistics, zeros))}
    x, y = jnp.asarray(images), jnp.asarray(labels)

    def call() -> Any:
        loss, held["state"] = run(held["state"], x, y)
        return jax.block_until_ready((loss, held["state"]))[0]

    return call
