"""The rows: what is computed, at the sizes of a GPU or at tiny ones."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from comparison.contender import SYMCONV, Array, Row
from comparison.rows_layers import _affine_chain, _transcendental_chain, problem_lines

from symconv.ops.conv_problem import ConvProblem
from symconv.ops.spec import Kind

from . import symconv_side

_TOLERANCES = {"float32": 1e-4, "bfloat16": 3e-2}
_DEPTHWISE = ("fprop n64 c32 h112 w112 k32 r3 s3 p1 g32 f32", "fprop n64 c144 h56 w56 k144 r3 s3 p1 g144 f32",
              "fprop n64 c96 h112 w112 k96 r3 s3 u2 p1 g96 f32", "fprop n64 c384 h14 w14 k384 r3 s3 p1 g384 f32",
              "fprop n64 c960 h7 w7 k960 r3 s3 p1 g960 f32", "fprop n64 c240 h28 w28 k240 r5 s5 p2 g240 f32")
_TENSOR = ("fprop n64 c256 h28 w28 k256 r3 s3 p1 bf16", "dgrad n64 c256 h28 w28 k256 r3 s3 p1 bf16",
           "wgrad n64 c256 h28 w28 k256 r3 s3 p1 bf16")


@dataclass(frozen=True)
class Sizes:
    """How large everything is."""

    batches: tuple[int, int]       # for the layers whose batch is 1, and 8, in the list
    most_channels: int
    most_pixels: int
    elements: int
    lenet: int
    resnet: tuple[str, int, int]   # network, batch of inference, of training
    matmul: int
    copied_bytes: int


FULL = Sizes((4, 64), 1 << 20, 1 << 20, 64 << 20, 256, ("resnet50", 64, 64), 8192, 1 << 30)
TINY = Sizes((1, 1), 8, 8, 1 << 10, 2, ("resnet50_tiny", 1, 2), 64, 1 << 16)


class Rows:
    """Builds rows for one device; `torch` is the module of PyTorch's contenders, None without it, and its device's name."""

    def __init__(self, device: str, sizes: Sizes, torch: Any, torch_device: str, without: tuple[str, ...]) -> None:
        self.device, self.sizes, self.torch, self.torch_device, self.without = device, sizes, torch, torch_device, without

    def _peers(self, names: tuple[str, ...]) -> list[str]:
        return [name for name in names if self.torch is not None and name not in self.without]

    def _sized(self, line: str, kind: str, dtype: str) -> ConvProblem:
        """A problem of the list at this run's sizes."""
        problem, sizes = ConvProblem.parse(line), self.sizes
        batch = sizes.batches[problem.x_shape[0] > 1]
        groups = problem.spec.groups
        c, k = (max(min(size, sizes.most_channels), 1) for size in (problem.x_shape[1], problem.w_shape[0]))
        if groups > 1:
            groups = min(groups, c)
            c, k = c // groups * groups, k // groups * groups
        pixels = tuple(max(min(size, sizes.most_pixels), reach) for size, reach in
                       zip(problem.x_shape[2:], problem.w_shape[2:], strict=True))
        return replace(problem, kind=Kind(kind), x_shape=(batch, c, *pixels), w_shape=(k, c // groups, *problem.w_shape[2:]),
                       spec=replace(problem.spec, groups=groups), dtype=dtype, result_dtype=dtype)

    def _layer_row(self, group: str, problem: ConvProblem, ours: dict[str, Callable[[], Any]], names: tuple[str, ...]) -> Row:
        builders = dict(ours)
        for name in self._peers(names):
            builders[name] = partial(self._torch_layer, name, problem)
        return Row(group, str(problem), builders, problem.flops, problem.bytes, _TOLERANCES[problem.dtype])

    def _torch_layer(self, name: str, problem: ConvProblem) -> Any:
        return self.torch.layer(self.torch_device, name, problem, problem_arrays(problem))

    def _own_layer(self, problem: ConvProblem, implementation: str = "", name: str = SYMCONV) -> Callable[[], Any]:
        return lambda: symconv_side.layer(self.device, problem, problem_arrays(problem), implementation, name)

    def layers(self) -> list[Row]:
        """All kinds of the list's layers, in both dtypes."""
        problems = [self._sized(line, kind, dtype) for dtype in ("bfloat16", "float32") for kind in ("fprop", "dgrad", "wgrad")
                    for line in problem_lines()]
        return [self._layer_row(f"{problem.kind.value} {problem.dtype}", problem, {SYMCONV: self._own_layer(problem)},
                                ("torch", "torch channels_last")) for problem in dict.fromkeys(problems)]

    def depthwise(self) -> list[Row]:
        """Generated kernels alone, beside cuDNN through symconv and PyTorch's."""
        problems = [self._sized(line, kind, dtype) for dtype in ("bfloat16", "float32") for kind in ("fprop", "dgrad", "wgrad")
                    for line in _DEPTHWISE]
        rows = []
        for problem in dict.fromkeys(problems):
            forced = "conv_wgrad_depthwise_cuda" if problem.kind is Kind.WGRAD else "conv_depthwise_cuda"
            ours = {SYMCONV: self._own_layer(problem, forced), "cudnn": self._own_layer(problem, "cudnn", "cudnn")}
            rows.append(self._layer_row("depthwise", problem, ours, ("torch channels_last",)))
        return rows

    def tensor_cores(self) -> list[Row]:
        """The implicit GEMM on tensor cores, forced."""
        rows = []
        for line in _TENSOR:
            problem = self._sized(line, line.split()[0], "bfloat16")
            forced = "conv_tensor_wgrad" if problem.kind is Kind.WGRAD else "conv_tensor"
            rows.append(self._layer_row("tensor", problem, {SYMCONV: self._own_layer(problem, forced)},
                                        ("torch", "torch channels_last")))
        return rows

    def elementwise(self) -> list[Row]:
        """A chain bound by memory and one bound by arithmetic."""
        generator = np.random.default_rng(0)
        arrays = [generator.standard_normal(self.sizes.elements, dtype=np.float32) for _ in range(2)]
        rows = []
        for text, chain in (("max(x, y)*(x - y) + x*x", _affine_chain),
                            ("tanh(x)*exp(-y*y) + sqrt(x*x + y*y)", _transcendental_chain)):
            builders: dict[str, Any] = {SYMCONV: partial(symconv_side.elementwise, self.device, chain, arrays)}
            for name in self._peers(("torch", "torch.compile")):
                builders[name] = partial(self.torch.elementwise, self.torch_device, name, chain, arrays)
            rows.append(Row("elementwise", text, builders, 0, 3 * 4 * self.sizes.elements, 1e-5))
        return rows

    def lenet(self) -> list[Row]:
        """A training step."""
        return [self._network("lenet", "step", self.sizes.lenet, "float32")]

    def resnet(self) -> list[Row]:
        """Inference and training step of ResNet-50 in bfloat16."""
        name, inference, training = self.sizes.resnet
        return [self._network(name, "inference", inference, "bfloat16"), self._network(name, "step", training, "bfloat16")]

    def _network(self, name: str, work: str, batch: int, compute: str) -> Row:
        builders: dict[str, Any] = {SYMCONV: partial(symconv_side.network, self.device, name, work, batch, compute)}
        for peer in self._peers(("torch", "torch channels_last", "torch.compile", "torch.compile max-autotune")):
            if not (name == "lenet" and peer == "torch channels_last"):
                builders[peer] = partial(self.torch.network, self.torch_device, peer, name, work, batch, compute)
        tolerance = {"float32": 2e-3, "bfloat16": 6e-2}[compute]
        return Row(name, f"{name} {work}, batch {batch}, {compute}", builders, tolerance=tolerance,
                   checked_calls=2 if work == "step" else 1)


def problem_arrays(problem: ConvProblem) -> list[Array]:
    """The two tensors that a problem reads, as float32."""
    generator = np.random.default_rng(0)
    shapes = {"x": problem.x_shape, "w": problem.w_shape, "y": problem.y_shape}
    return [generator.standard_normal(shapes[role], dtype=np.float32) for role in problem.kind.reads]
