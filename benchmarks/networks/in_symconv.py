"""The networks in symconv's words: parameters are shared variables; one compiled function for inference, one for a step."""
from __future__ import annotations

from typing import Any

import symconv as sc
import symconv.tensor as T
from symconv.tensor import nnet

from .architectures import IMAGE, NETWORKS
from .parameters import EPSILON, MOMENTUM_OF_STATISTICS, Parameters


class SymconvWords:
    """Words that build symconv's expressions; in training `updates` collects the new running statistics.

    `compute` is the dtype of tensors between layers; parameters and statistics stay float32.
    """

    def __init__(self, parameters: Parameters, training: bool, compute: str = "float32") -> None:
        self.compute = compute
        self.trained = {name: sc.shared(array, name, shape=array.shape) for name, array in parameters.trained.items()}
        self.statistics = {name: sc.shared(array, name, shape=array.shape) for name, array in parameters.statistics.items()}
        self.training = training
        self.updates: list[tuple[sc.SharedVariable, sc.Variable]] = []

    def conv(self, x: Any, name: str, filters: int, size: int, stride: int = 1, padding: int = 0, groups: int = 1,
             bias: bool = False) -> Any:
        """A convolution without flip."""
        y = nnet.conv_fprop(x, self._weights(name), stride=stride, padding=padding, groups=groups)
        return (y + self.trained[f"{name}.bias"].dimshuffle("x", 0, "x", "x")).astype(self.compute) if bias else y

    def _weights(self, name: str) -> Any:
        return self.trained[f"{name}.weight"].astype(self.compute)

    def batch_norm(self, x: Any, name: str) -> Any:
        """By the batch's statistics in training, by the running ones else."""
        scale, shift = self.trained[f"{name}.weight"], self.trained[f"{name}.bias"]
        mean, var = self.statistics[f"{name}.mean"], self.statistics[f"{name}.var"]
        if not self.training:
            return nnet.batch_normalization_test(x, scale, shift, mean, var, "spatial", EPSILON).astype(self.compute)
        out, _, _, new_mean, new_var = nnet.batch_normalization_train(x, scale, shift, "spatial", EPSILON, MOMENTUM_OF_STATISTICS,
                                                                      mean, var)
        self.updates += [(mean, new_mean), (var, new_var)]
        return out.astype(self.compute)

    def dense(self, x: Any, name: str, units: int) -> Any:
        """x·weight + bias."""
        return T.dot(x, self._weights(name)).astype("float32") + self.trained[f"{name}.bias"]

    def max_pool(self, x: Any, size: int, stride: int, padding: int = 0) -> Any:
        """Maxima of square windows."""
        return nnet.max_pool_2d(x, size, stride, padding)

    def relu(self, x: Any) -> Any:
        """max(x, 0)."""
        return nnet.relu(x)

    def relu6(self, x: Any) -> Any:
        """min(max(x, 0), 6)."""
        return T.clip(x, 0, 6)

    def tanh(self, x: Any) -> Any:
        """tanh x."""
        return T.tanh(x)

    def flatten(self, x: Any) -> Any:
        """All axes but the first joined."""
        return x.flatten(2)

    def mean_of_pixels(self, x: Any) -> Any:
        """The mean over the image."""
        return nnet.global_average_pool(x)

    def channels(self, x: Any) -> int:
        """How many channels x has."""
        return int(x.type.shape[1])


def inference(network: str, parameters: Parameters, batch: int, profile: bool = False, device: str | None = None,
              compute: str = "float32") -> sc.Function:
    """images (of dtype `compute`) → scores, which stay on the device where one is named."""
    images = T.tensor("images", compute, (batch, *IMAGE[network]))
    scores = NETWORKS[network](SymconvWords(parameters, False, compute), images)
    return sc.compile([images], sc.Out(scores, on_device=device is not None), name=f"{network}_inference", profile=profile,
                      device=device)


def training_step(network: str, parameters: Parameters, batch: int, learning_rate: float, momentum: float,
                  profile: bool = False, device: str | None = None, compute: str = "float32") -> sc.Function:
    """(images, labels) → loss, with SGD's updates of the parameters and the updates of the running statistics."""
    images = T.tensor("images", compute, (batch, *IMAGE[network]))
    labels = T.tensor("labels", "int64", (batch,))
    words = SymconvWords(parameters, True, compute)
    loss = nnet.softmax_cross_entropy(NETWORKS[network](words, images), labels).mean()
    trained = list(words.trained.values())
    updates = list(words.updates)
    for parameter, gradient in zip(trained, sc.grad(loss, trained), strict=True):
        if momentum:
            velocity = sc.shared(0 * parameter.get_value(), f"velocity of {parameter.name}", shape=parameter.static_shape)
            step = momentum * velocity + gradient
            updates += [(velocity, step), (parameter, parameter - learning_rate * step)]
        else:
            updates.append((parameter, parameter - learning_rate * gradient))
    return sc.compile([images, labels], sc.Out(loss, on_device=device is not None), updates=updates, name=f"{network}_step",
                      profile=profile, device=device)
