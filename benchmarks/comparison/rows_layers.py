"""Rows of single convolution layers and of elementwise chains."""
from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from symconv.ops.conv_problem import ConvProblem, parse_problems

from . import symconv_side
from .contender import SYMCONV, Array, Row
from .peers import Peers

PROBLEMS = Path(__file__).parents[2] / "tests" / "problems" / "cpu_layers.txt"
CHAIN_SIZE = 4 * 1024 * 1024


def problem_lines() -> list[str]:
    """The 24 problems, as forward ones."""
    return [str(problem) for problem in parse_problems(PROBLEMS.read_text())]


def problem_arrays(problem: ConvProblem) -> list[Array]:
    """The two tensors that a problem reads, random."""
    generator = np.random.default_rng(0)
    shapes = {"x": problem.x_shape, "w": problem.w_shape, "y": problem.y_shape}
    return [generator.standard_normal(shapes[role], dtype=np.float32) for role in problem.kind.reads]


def is_dense_3x3(problem: ConvProblem) -> bool:
    """Whether Winograd's method could serve: 3×3, stride 1, not dilated, one group."""
    spec = problem.spec
    return problem.w_shape[2:] == (3, 3) and set(spec.stride + spec.dilation) == {1} and spec.groups == 1


def layer_rows(kinds: tuple[str, ...], peers: Peers) -> list[Row]:
    """One row for each problem and kind."""
    rows = []
    for line in problem_lines():
        for kind in kinds:
            problem = ConvProblem.parse(" ".join([kind, *line.split()[1:]]))
            builders = {SYMCONV: partial(_symconv_layer, problem)}
            for name, peer in peers.of("layer"):
                if kind == "fprop" or name not in ("onnxruntime", "torch.compile"):
                    builders[name] = partial(_peer_layer, peer, name, problem)
            rows.append(Row(kind, str(problem), builders, problem.flops, problem.bytes, 1e-4))
    return rows


def _symconv_layer(problem: ConvProblem) -> Any:
    return symconv_side.layer(problem, problem_arrays(problem))


def _peer_layer(peer: Any, name: str, problem: ConvProblem) -> Any:
    return peer.layer(name, problem, problem_arrays(problem))


def _affine_chain(m: Any, x: Any, y: Any) -> Any:
    """Few operations a value: bound by memory."""
    return m.maximum(x, y) * (x - y) + x * x


def _transcendental_chain(m: Any, x: Any, y: Any) -> Any:
    """Exponentials: bound by arithmetic."""
    return m.tanh(x) * m.exp(-y * y) + m.sqrt(x * x + y * y)


def elementwise_rows(peers: Peers) -> list[Row]:
    """Two chains over 4 M floats: one bound by memory, one by arithmetic."""
    generator = np.random.default_rng(0)
    arrays = [generator.standard_normal(CHAIN_SIZE, dtype=np.float32) for _ in range(2)]
    rows = []
    for text, chain in (("max(x, y)*(x - y) + x*x", _affine_chain), ("tanh(x)*exp(-y*y) + sqrt(x*x + y*y)", _transcendental_chain)):
        builders = {SYMCONV: partial(symconv_side.elementwise, chain, arrays)}
        for name, peer in peers.of("elementwise"):
            if name != "torch channels_last":
                builders[name] = partial(peer.elementwise, name, chain, arrays)
        rows.append(Row("elementwise", text, builders, 0, 3 * 4 * CHAIN_SIZE, 1e-5))
    return rows
