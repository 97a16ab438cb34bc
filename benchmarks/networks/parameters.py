"""Parameters of a network as NumPy arrays: made once by walking its architecture with shapes, then given to every library."""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .architectures import IMAGE, N_CLASSES, NETWORKS

Array = np.ndarray[Any, Any]
EPSILON = 1e-5
MOMENTUM_OF_STATISTICS = 0.1


@dataclass
class Parameters:
    """`trained` arrays by name, and the running `statistics` of the batch normalisations."""

    trained: dict[str, Array] = field(default_factory=dict)
    statistics: dict[str, Array] = field(default_factory=dict)


class Shape(tuple[int, ...]):
    """A shape that can be added to one like it, as the network adds tensors."""

    def __add__(self, other: Any) -> Shape:
        assert self == other
        return self


class ShapeWords:
    """Words that compute shapes and make each parameter when they meet it (He's initialisation)."""

    def __init__(self, seed: int) -> None:
        self.parameters = Parameters()
        self._generator = np.random.default_rng(seed)

    def conv(self, x: Shape, name: str, filters: int, size: int, stride: int = 1, padding: int = 0, groups: int = 1,
             bias: bool = False) -> Shape:
        """A convolution without flip; the same size, stride and padding along both axes."""
        self._weights(f"{name}.weight", (filters, x[1] // groups, size, size), x[1] // groups * size * size)
        if bias:
            self.parameters.trained[f"{name}.bias"] = np.zeros(filters, np.float32)
        return self._window(Shape((x[0], filters, *x[2:])), size, stride, padding)

    def batch_norm(self, x: Shape, name: str) -> Shape:
        """Normalisation by channel; statistics as after some training, so that inference has something to compute."""
        draw = self._generator.uniform
        for suffix, values in (("weight", (0.8, 1.2)), ("bias", (-0.1, 0.1))):
            self.parameters.trained[f"{name}.{suffix}"] = draw(*values, x[1]).astype(np.float32)
        for suffix, values in (("mean", (-0.1, 0.1)), ("var", (0.8, 1.2))):
            self.parameters.statistics[f"{name}.{suffix}"] = draw(*values, x[1]).astype(np.float32)
        return x

    def dense(self, x: Shape, name: str, units: int) -> Shape:
        """x·weight + bias, the weight (inputs, units)."""
        self._weights(f"{name}.weight", (x[1], units), x[1])
        self.parameters.trained[f"{name}.bias"] = np.zeros(units, np.float32)
        return Shape((x[0], units))

    def max_pool(self, x: Shape, size: int, stride: int, padding: int = 0) -> Shape:
        """Maxima of square windows."""
        return self._window(x, size, stride, padding)

    def relu(self, x: Shape) -> Shape:
        """And the other activations: the same shape."""
        return x

    relu6 = tanh = relu

    def flatten(self, x: Shape) -> Shape:
        """All axes but the first joined."""
        return Shape((x[0], int(np.prod(x[1:]))))

    def mean_of_pixels(self, x: Shape) -> Shape:
        """The mean over the image."""
        return Shape(x[:2])

    def channels(self, x: Shape) -> int:
        """How many channels x has."""
        return x[1]

    def _window(self, x: Shape, size: int, stride: int, padding: int) -> Shape:
        return Shape((*x[:2], *((n + 2 * padding - size) // stride + 1 for n in x[2:])))

    def _weights(self, name: str, shape: tuple[int, ...], fan_in: int) -> None:
        values = self._generator.normal(0, np.sqrt(2 / fan_in), shape)
        self.parameters.trained[name] = values.astype(np.float32)


def make_parameters(network: str, seed: int = 0) -> Parameters:
    """Fresh parameters of a network, always the same for a seed."""
    words = ShapeWords(seed)
    NETWORKS[network](words, Shape((1, *IMAGE[network])))
    return words.parameters


def make_batch(network: str, batch: int, seed: int = 1) -> tuple[Array, Array]:
    """Random images and labels."""
    generator = np.random.default_rng(seed)
    images = generator.standard_normal((batch, *IMAGE[network]), dtype=np.float32)
    return images, generator.integers(0, N_CLASSES[network], batch)
