"""A captured graph: the nodes of one compilation, hash-consed, so that equal expressions are one node.

Interning belongs to one compilation (`Interner`); users' own nodes are never interned.
"""
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ..errors import ShapeError, explain_error
from .node import Apply, Op, make_apply
from .provenance import Sources, merge_sources
from .traversal import readers_in, toposort
from .types import TensorType
from .variable import Constant, Variable


class Interner:
    """Makes nodes, one for each (op, inputs); constants are one for each value."""

    def __init__(self) -> None:
        self._nodes: dict[tuple[Any, ...], Apply] = {}
        self._constants: dict[tuple[Any, ...], Constant] = {}

    def apply(self, op: Op, inputs: Sequence[Variable], source: Sources = (), like: Apply | None = None,
              types: Sequence[TensorType] | None = None) -> Apply:
        """The node of `op` and these (already interned) inputs.

        `like` is the node in whose place it comes: what is known of that one's outputs holds for it too.  `types` are the types of
        its outputs, where the caller has just inferred them.
        """
        key = (op, *inputs)
        node = self._nodes.get(key)
        if node is None:
            node = self._nodes[key] = _new_node(op, inputs, source, like, types)
        elif source and source != node.source:
            node.source = merge_sources(node.source, source)
        return node

    def constant(self, constant: Constant) -> Constant:
        """The one constant with this type and value."""
        return self._constants.setdefault(constant.key, constant)

    def leaf(self, variable: Variable) -> Variable:
        """A leaf as it stands in captured graphs."""
        return self.constant(variable) if isinstance(variable, Constant) else variable

    def rebuild(self, variables: Iterable[Variable], memo: dict[Variable, Variable],
                source: Sources = ()) -> list[Variable]:
        """The variables over interned nodes, with what `memo` maps already replaced; `memo` gains every new pair."""
        variables = list(variables)
        for node in _unseen(variables, memo):
            inputs = [self._seen(variable, memo) for variable in node.inputs]
            new = self.apply(node.op, inputs, node.source or source, node)
            for old, output in zip(node.outputs, new.outputs, strict=True):
                if old not in memo:
                    memo[old] = output
                    output.name = output.name or old.name
        return [self._seen(variable, memo) for variable in variables]

    def _seen(self, variable: Variable, memo: dict[Variable, Variable]) -> Variable:
        if variable not in memo:
            memo[variable] = self.leaf(variable)
        return memo[variable]


def _new_node(op: Op, inputs: Sequence[Variable], source: Sources, like: Apply | None,
              types: Sequence[TensorType] | None) -> Apply:
    if types is not None:
        return Apply(op, inputs, types, source)
    if like is None:
        return make_apply(op, inputs, source)
    known = [output.type for output in like.outputs]
    if op is like.op and not op.value_inputs and _same_types(inputs, like.inputs):
        return Apply(op, inputs, known, source)  # to infer them again would give the same
    node = make_apply(op, inputs, source)
    if any(output.type != type for output, type in zip(node.outputs, known, strict=True)):
        return _with_known_types(node, known)
    return node


def _same_types(inputs: Sequence[Variable], others: Sequence[Variable]) -> bool:
    return all(a is b or a.type == b.type for a, b in zip(inputs, others, strict=True))


def _with_known_types(node: Apply, known: Sequence[TensorType]) -> Apply:
    """The node with output types that say all that inference and `known` say together."""
    types = []
    for output, type in zip(node.outputs, known, strict=True):
        if not output.type.accepts(type):
            raise ShapeError(explain_error(f"the result of {node.op} does not fit where it is used",
                                           f"{output.type}, where {type} was built", where=node.source))
        types.append(output.type.meet(type))
    return Apply(node.op, node.inputs, types, node.source)


def _unseen(outputs: Iterable[Variable], memo: Mapping[Variable, Variable]) -> list[Apply]:
    """Nodes that the outputs need and `memo` does not replace, inputs before readers."""
    order: list[Apply] = []
    done: set[Apply] = set()
    for output in outputs:
        stack = [(output, False)]
        while stack:
            variable, expanded = stack.pop()
            node = variable.apply
            if node is None or variable in memo or node in done:
                continue
            if expanded:
                done.add(node)
                order.append(node)
            else:
                stack.append((variable, True))
                stack.extend((each, False) for each in reversed(node.inputs) if each.apply is not None)
    return order


@dataclass(frozen=True)
class FunctionGraph:
    """Inputs, outputs and updates of one function over interned nodes. A rewrite makes a new one."""

    inputs: tuple[Variable, ...]
    outputs: tuple[Variable, ...]
    updates: tuple[tuple[Variable, Variable], ...]
    interner: Interner

    @property
    def results(self) -> tuple[Variable, ...]:
        """Outputs, then the new values of the updates."""
        return self.outputs + tuple(new for _, new in self.updates)

    @cached_property
    def nodes(self) -> tuple[Apply, ...]:
        """Every node, inputs before readers."""
        return tuple(toposort(self.results))

    @cached_property
    def readers(self) -> dict[Variable, list[Apply]]:
        """For every variable, the nodes that read it."""
        return readers_in(self.nodes)

    @cached_property
    def leaves(self) -> tuple[Variable, ...]:
        """Inputs (all, also unused ones), then the other leaves in order of first use."""
        found = dict.fromkeys(self.inputs)
        for node in self.nodes:
            found.update((variable, None) for variable in node.inputs if variable.apply is None)
        found.update((variable, None) for variable in self.results if variable.apply is None)
        found.update((target, None) for target, _ in self.updates)
        return tuple(found)

    def with_results(self, results: Sequence[Variable]) -> FunctionGraph:
        """The same inputs and update targets with other outputs and new values."""
        count = len(self.outputs)
        targets = [target for target, _ in self.updates]
        return FunctionGraph(self.inputs, tuple(results[:count]),
                             tuple(zip(targets, results[count:], strict=True)), self.interner)


def capture(inputs: Sequence[Variable], outputs: Sequence[Variable], updates: Sequence[tuple[Variable, Variable]] = (),
            replace: Mapping[Variable, Variable] | None = None) -> FunctionGraph:
    """Capture an expression: intern every node; `replace` (givens) puts other variables in place of some.

    A replacement is not itself searched for what is replaced, as in Theano.
    """
    interner = Interner()
    memo: dict[Variable, Variable] = {}
    if replace:
        plain: dict[Variable, Variable] = {}
        new_values = interner.rebuild(replace.values(), plain)
        memo.update(zip(replace.keys(), new_values, strict=True))
    results = interner.rebuild([*outputs, *(new for _, new in updates)], memo)
    graph = FunctionGraph(tuple(inputs), (), tuple((target, target) for target, _ in updates), interner)
    return FunctionGraph(graph.inputs, tuple(results[:len(outputs)]),
                         tuple((target, new) for (target, _), new in zip(updates, results[len(outputs):], strict=True)),
                         interner)
