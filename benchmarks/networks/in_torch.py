"""The networks in PyTorch's words: a module whose parameters and buffers have the same values."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional

from .architectures import NETWORKS
from .parameters import EPSILON, MOMENTUM_OF_STATISTICS, Parameters


class TorchWords(torch.nn.Module):
    """Words that run PyTorch's functions; `forward` is the whole network."""

    def __init__(self, network: str, parameters: Parameters) -> None:
        super().__init__()
        self.network = NETWORKS[network]
        for name, array in parameters.trained.items():
            tensor = torch.from_numpy(array.copy())
            # PyTorch's dense layers hold their weights as (units, inputs)
            tensor = tensor.T.contiguous() if array.ndim == 2 else tensor
            self.register_parameter(_attribute(name), torch.nn.Parameter(tensor))
        for name, array in parameters.statistics.items():
            self.register_buffer(_attribute(name), torch.from_numpy(array.copy()))

    def forward(self, x: Any) -> Any:
        """The scores of images."""
        return self.network(self, x)

    def value(self, name: str) -> Any:
        """A parameter or buffer by the network's name for it."""
        return getattr(self, _attribute(name))

    def conv(self, x: Any, name: str, filters: int, size: int, stride: int = 1, padding: int = 0, groups: int = 1,
             bias: bool = False) -> Any:
        """A convolution."""
        return functional.conv2d(x, self.value(f"{name}.weight"), self.value(f"{name}.bias") if bias else None, stride, padding, 1,
                                 groups)

    def batch_norm(self, x: Any, name: str) -> Any:
        """By the batch's statistics in training, by the running ones else."""
        return functional.batch_norm(x, self.value(f"{name}.mean"), self.value(f"{name}.var"), self.value(f"{name}.weight"),
                                     self.value(f"{name}.bias"), self.training, MOMENTUM_OF_STATISTICS, EPSILON)

    def dense(self, x: Any, name: str, units: int) -> Any:
        """x·weight + bias."""
        return functional.linear(x, self.value(f"{name}.weight"), self.value(f"{name}.bias"))

    def max_pool(self, x: Any, size: int, stride: int, padding: int = 0) -> Any:
        """Maxima of square windows."""
        return functional.max_pool2d(x, size, stride, padding)

    def relu(self, x: Any) -> Any:
        """max(x, 0), in place as torchvision's networks have it."""
        return functional.relu(x, inplace=True)

    def relu6(self, x: Any) -> Any:
        """min(max(x, 0), 6), in place."""
        return functional.relu6(x, inplace=True)

    def tanh(self, x: Any) -> Any:
        """tanh x."""
        return torch.tanh(x)

    def flatten(self, x: Any) -> Any:
        """All axes but the first joined."""
        return torch.flatten(x, 1)

    def mean_of_pixels(self, x: Any) -> Any:
        """The mean over the image."""
        return x.mean((2, 3))

    def channels(self, x: Any) -> int:
        """How many channels x has."""
        return int(x.shape[1])


def _attribute(name: str) -> str:
    return name.replace(".", "_")


def training_step(module: Any, images: Any, labels: Any, learning_rate: float, momentum: float,
                  compiled: bool) -> Callable[[], Any]:
    """One step of SGD (the fused one, PyTorch's fastest on a CPU); returns the loss."""
    module.train()
    optimizer = torch.optim.SGD(module.parameters(), lr=learning_rate, momentum=momentum, fused=True)

    def loss_of(x: Any, y: Any) -> Any:
        return functional.cross_entropy(module(x), y)

    loss_function = torch.compile(loss_of) if compiled else loss_of

    def step() -> Any:
        optimizer.zero_grad(set_to_none=True)
        loss = loss_function(images, labels)
        loss.backward()
        optimizer.step()
        return loss

    return step
