"""Walks over expressions, all iterative: a chain of 20,000 nodes needs no deep recursion."""
from __future__ import annotations

from collections.abc import Iterable

from .node import Apply
from .variable import Variable


def toposort(outputs: Iterable[Variable]) -> list[Apply]:
    """Every node that the outputs need, inputs before readers, in a stable order (depth first, as written)."""
    order: list[Apply] = []
    done: set[Apply] = set()
    for output in outputs:
        stack = [(output.apply, False)] if output.apply is not None else []
        while stack:
            node, expanded = stack.pop()
            if node in done:
                continue
            if expanded:
                done.add(node)
                order.append(node)
                continue
            stack.append((node, True))
            stack.extend((variable.apply, False) for variable in reversed(node.inputs)
                         if variable.apply is not None and variable.apply not in done)
    return order


def ancestors(outputs: Iterable[Variable]) -> list[Variable]:
    """Every variable that the outputs need, themselves included, leaves and inputs before readers."""
    seen: dict[Variable, None] = {}
    outputs = list(outputs)
    for node in toposort(outputs):
        seen.update(dict.fromkeys(node.inputs))
        seen.update(dict.fromkeys(node.outputs))
    seen.update(dict.fromkeys(outputs))
    return list(seen)


def leaves(outputs: Iterable[Variable]) -> list[Variable]:
    """The inputs, constants and shared variables that the outputs need, in order of first use."""
    return [variable for variable in ancestors(outputs) if variable.apply is None]


def readers(outputs: Iterable[Variable]) -> dict[Variable, list[Apply]]:
    """For every variable, the nodes that read it (once for each use)."""
    result: dict[Variable, list[Apply]] = {}
    for node in toposort(outputs):
        for variable in node.inputs:
            result.setdefault(variable, []).append(node)
    return result
