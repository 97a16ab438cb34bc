"""The networks in ONNX's words: nodes of a graph for inference, weights by name."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from onnx import helper

from .parameters import EPSILON, Parameters


@dataclass(frozen=True)
class Value:
    """A tensor of the graph by its name; `+` is the network's way to join two."""

    words: OnnxWords
    name: str
    channels: int

    def __add__(self, other: Value) -> Value:
        return self.words.add("Add", [self.name, other.name], self.channels)


class OnnxWords:
    """Words that write ONNX nodes."""

    def __init__(self, parameters: Parameters) -> None:
        self.parameters = parameters
        self.nodes: list[Any] = []

    def image(self, channels: int) -> Value:
        """The network's input."""
        return Value(self, "image", channels)

    def rename(self, value: Value) -> None:
        """Call the last node's value "result"."""
        assert self.nodes[-1].output[0] == value.name
        self.nodes[-1].output[0] = "result"

    def add(self, kind: str, inputs: list[str], channels: int, **attributes: Any) -> Value:
        """One more node."""
        name = f"value{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [name], **attributes))
        return Value(self, name, channels)

    def conv(self, x: Value, name: str, filters: int, size: int, stride: int = 1, padding: int = 0, groups: int = 1,
             bias: bool = False) -> Value:
        """A convolution."""
        inputs = [x.name, f"{name}.weight", *([f"{name}.bias"] if bias else [])]
        return self.add("Conv", inputs, filters, strides=[stride] * 2, pads=[padding] * 4, group=groups, kernel_shape=[size] * 2)

    def batch_norm(self, x: Value, name: str) -> Value:
        """By the running statistics."""
        inputs = [x.name, *(f"{name}.{part}" for part in ("weight", "bias", "mean", "var"))]
        return self.add("BatchNormalization", inputs, x.channels, epsilon=EPSILON)

    def dense(self, x: Value, name: str, units: int) -> Value:
        """x·weight + bias."""
        return self.add("Gemm", [x.name, f"{name}.weight", f"{name}.bias"], units)

    def max_pool(self, x: Value, size: int, stride: int, padding: int = 0) -> Value:
        """Maxima of square windows."""
        return self.add("MaxPool", [x.name], x.channels, kernel_shape=[size] * 2, strides=[stride] * 2, pads=[padding] * 4)

    def relu(self, x: Value) -> Value:
        """max(x, 0)."""
        return self.add("Relu", [x.name], x.channels)

    def relu6(self, x: Value) -> Value:
        """min(max(x, 0), 6): a Clip whose bounds are constants."""
        bounds = [self._constant(bound) for bound in (0.0, 6.0)]
        return self.add("Clip", [x.name, *bounds], x.channels)

    def tanh(self, x: Value) -> Value:
        """tanh x."""
        return self.add("Tanh", [x.name], x.channels)

    def flatten(self, x: Value) -> Value:
        """All axes but the first joined."""
        return self.add("Flatten", [x.name], 0)

    def mean_of_pixels(self, x: Value) -> Value:
        """The mean over the image."""
        return self.flatten(self.add("GlobalAveragePool", [x.name], x.channels))

    def channels(self, x: Value) -> int:
        """How many channels x has."""
        return x.channels

    def _constant(self, number: float) -> str:
        return self.add("Constant", [], 0, value_float=number).name
