"""Helpers of the tests of rewrites: run the pipeline without code generation, and look at the result."""
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from symconv.graph import FunctionGraph, TensorType, Variable, capture
from symconv.rewrites import Log, rewrite_bound, rewrite_symbolic
from symconv.runtime.bind import bind
from symconv.runtime.interpret import evaluate
from symconv.target import Target

Array = np.ndarray[Any, Any]


def _accept(*_: Any) -> str | None:
    return None


WILLING = Target(refuse_epilogue=_accept, refuse_elementwise=_accept)
"""A device that can run every fused form."""


def leaf(dtype: str, shape: Sequence[int | None], name: str = "x") -> Variable:
    """An input of any dtype and shape."""
    return Variable(TensorType(dtype, tuple(shape)), name)


def ops(graph: FunctionGraph) -> list[str]:
    """The names of all ops of a graph, inputs before readers."""
    return [str(node.op) for node in graph.nodes]


def symbolic(inputs: Sequence[Variable], outputs: Sequence[Variable], target: Target = WILLING,
             **options: Any) -> FunctionGraph:
    """The graph after the symbolic phases."""
    return rewrite_symbolic(capture(inputs, outputs), target, **options)[0]


def bound(values: Mapping[Variable, Array], outputs: Sequence[Variable], target: Target = WILLING, *,
          include: Iterable[str] | None = None, exclude: Iterable[str] = ()) -> tuple[FunctionGraph, list[Array], Log]:
    """The graph after all phases, bound to the shapes of `values`; its outputs' values by the references; the log."""
    graph, log = rewrite_symbolic(capture(list(values), outputs), target, include=include, exclude=exclude)
    found = bind(graph, {leaf: np.asarray(values[leaf]) if leaf in values else leaf for leaf in graph.leaves})
    final, log = rewrite_bound(found.graph, target, include=include, exclude=exclude, log=log)
    bindings = {new: values[old] for new, old in found.leaves.items() if old in values}
    return final, evaluate(final.outputs, bindings), log
