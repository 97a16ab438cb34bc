"""What must hold of every captured graph, checked after rewriting when `config.verify` is set.

No cycles; every node is the interner's one node for its op and inputs; every type agrees with what the op infers from its
inputs; outputs of a node name it and their index; updates have the types of their targets.
"""
from __future__ import annotations

from ..errors import InternalError, UserError
from .captured import FunctionGraph
from .node import Apply
from .variable import Variable


def verify(graph: FunctionGraph, where: str = "") -> None:
    """Raise an InternalError that names what is wrong with the graph; `where` says after which step."""
    place = f" (after {where})" if where else ""
    for node in _nodes_in_order(graph, place):
        _verify_node(graph, node, place)
    for target, new in graph.updates:
        if not target.type.accepts(new.type):
            raise InternalError(f"the update of {target.label} has the type {new.type}, not {target.type}{place}")


def _verify_node(graph: FunctionGraph, node: Apply, place: str) -> None:
    for index, output in enumerate(node.outputs):
        if output.apply is not node or output.index != index:
            raise InternalError(f"output {index} of {node} does not belong to it{place}")
    if graph.interner.apply(node.op, node.inputs) is not node:
        raise InternalError(f"{node} is not the interned node of its op and inputs{place}")
    try:
        inferred = node.op.infer(*(variable.type for variable in node.inputs))
    except UserError as error:
        raise InternalError(f"{node} does not take its inputs{place}: {error}") from error
    found = tuple(output.type for output in node.outputs)
    if len(found) != len(inferred) or not all(a.accepts(b) for a, b in zip(found, inferred, strict=True)):
        raise InternalError(f"{node} has the types {_texts(found)}, its op infers {_texts(inferred)}{place}")


def _texts(types: tuple[object, ...]) -> str:
    return ", ".join(map(str, types))


def _nodes_in_order(graph: FunctionGraph, place: str) -> list[Apply]:
    """Inputs before readers, or an InternalError at a cycle; nothing is assumed of the graph."""
    order: list[Apply] = []
    state: dict[Apply, bool] = {}  # False: on the path, True: done
    stack: list[tuple[Variable, bool]] = [(variable, False) for variable in reversed(graph.results)]
    while stack:
        variable, expanded = stack.pop()
        node = variable.apply
        if node is None:
            continue
        if expanded:
            state[node] = True
            order.append(node)
        elif node not in state:
            state[node] = False
            stack.append((variable, True))
            stack.extend((each, False) for each in reversed(node.inputs))
        elif not state[node]:  # met again while it is still open: it lies below itself
            raise InternalError(f"{node} depends on itself{place}")
    return order

