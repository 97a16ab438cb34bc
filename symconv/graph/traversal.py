"""Walks over expressions, all iterative: a chain of 20,000 nodes needs no deep recursion."""
from __future__ import annotations

from collections.abc import Iterable

from .node import Apply
from .variable import Variable


def toposort(outputs: Iterable[Variable]) -> list[Apply]:
    """Every node that the outputs need, inputs before readers, in a stable order (depth first, as written)."""
    order: list[Apply] = []
    opened: set[Apply] = set()
    done: set[Apply] = set()
    for output in outputs:
        stack = [output.apply] if output.apply is not None else []
        while stack:
            node = stack[-1]
            if node in opened:
                stack.pop()
                if node not in done:
                    done.add(node)
                    order.append(node)
                continue
            opened.add(node)
            for variable in reversed(node.inputs):
                below = variable.apply
                if below is not None and below not in done:
                    stack.append(below)
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
    return readers_in(toposort(outputs))


def readers_in(nodes: Iterable[Apply]) -> dict[Variable, list[Apply]]:
    """For every variable, those of the nodes that read it (once for each use), in their order."""
    result: dict[Variable, list[Apply]] = {}
    for node in nodes:
        for variable in node.inputs:
            found = result.get(variable)
            if found is None:
                result[variable] = [node]
            else:
                found.append(node)
    return result
