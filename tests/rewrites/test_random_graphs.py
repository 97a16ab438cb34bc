"""Rewriting never changes an answer: 500 random graphs with fixed seeds, against NumPy and against the graph as it was."""
from __future__ import annotations

import numpy as np
import pytest
from random_graphs import RandomGraph
from rewriting import bound

import symconv as sc
from symconv.config import config
from symconv.graph.gradient import grad
from symconv.rewrites import PIPELINE

SEEDS = 500
BATCH = 25


def assert_agreement(found: list[np.ndarray], expected: list[np.ndarray], note: str, tolerance: float = 1e-9) -> None:
    for place, (a, b) in enumerate(zip(found, expected, strict=True)):
        assert a.shape == b.shape, f"{note}, output {place}: {a.shape} instead of {b.shape}"
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance, err_msg=f"{note}, output {place}")


@pytest.mark.parametrize("first", range(0, SEEDS, BATCH))
def test_on_off_and_numpy_agree(first: int) -> None:
    for seed in range(first, first + BATCH):
        graph = RandomGraph(seed)
        with config.change(verify=seed % 5 == 0):
            rewritten = bound(graph.inputs, graph.outputs)[1]
        assert_agreement(bound(graph.inputs, graph.outputs, include=())[1], graph.expected, f"seed {seed}, as built")
        assert_agreement(rewritten, graph.expected, f"seed {seed}, rewritten")


@pytest.mark.parametrize("first", range(3000, 3016, 4))
def test_generated_kernels_agree_with_numpy(first: int) -> None:
    """The same through `compile`: generated C, in place and with planned memory."""
    for seed in range(first, first + 4):
        graph = RandomGraph(seed)
        function = sc.compile(list(graph.inputs), graph.outputs, on_unused_input="ignore")
        assert_agreement(function(*graph.inputs.values()), graph.expected, f"seed {seed}, compiled")


@pytest.mark.parametrize("phase", [phase.name for phase in PIPELINE])
def test_each_phase_alone(phase: str) -> None:
    for seed in range(1000, 1040):
        graph = RandomGraph(seed)
        assert_agreement(bound(graph.inputs, graph.outputs, include=(phase,))[1], graph.expected, f"seed {seed}, only {phase}")


def test_gradients() -> None:
    """Gradients have no NumPy value here: rewritten against as built."""
    for seed in range(2000, 2060):
        graph = RandomGraph(seed, size=10)
        cost = sum((output * output).sum() for output in graph.outputs)
        gradients = grad(cost, list(graph.inputs), disconnected_inputs="ignore")
        as_built = bound(graph.inputs, gradients, include=())[1]
        assert_agreement(bound(graph.inputs, gradients)[1], as_built, f"seed {seed}", 1e-7)
