"""What a rule may ask: the graph at the start of the sweep, readers, constant values, the target."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from ..errors import InternalError
from ..graph import Apply, FunctionGraph, Op, Variable
from ..graph.provenance import Sources
from ..target import Target

Array = np.ndarray[Any, Any]


class _Known(dict[Variable, Variable]):
    """A memo of interning; an interned variable stands for itself."""

    def __setitem__(self, key: Variable, value: Variable) -> None:
        super().__setitem__(key, value)
        super().__setitem__(value, value)


class Vocabulary:
    """The interned variables of one phase; grows as rules make new ones."""

    def __init__(self, graph: FunctionGraph) -> None:
        self.interner = graph.interner
        self._known = _Known()
        self.admit(graph.nodes)

    def admit(self, nodes: Iterable[Apply]) -> None:
        """Note that these nodes, and the leaves they read, are interned."""
        for node in nodes:
            for output in node.outputs:
                dict.__setitem__(self._known, output, output)

    def intern(self, variables: Iterable[Variable], source: Sources) -> list[Variable]:
        """The same expressions over interned nodes; new nodes get `source`."""
        variables = list(variables)
        for node in self._new_nodes(variables):
            inputs = [self._seen(variable) for variable in node.inputs]
            made = self.interner.apply(node.op, inputs, source, node)
            for old, new in zip(node.outputs, made.outputs, strict=True):
                self._known[old] = new
                new.name = new.name or old.name
        return [self._seen(variable) for variable in variables]

    def substitute(self, results: Sequence[Variable], given: Mapping[Variable, Variable]) -> dict[Variable, Variable]:
        """Every variable that the results need → its form with what is `given` put in place (also inside what is given)."""
        done: dict[Variable, Variable] = {}
        opened: set[Variable] = set()
        stack = list(reversed(results))
        while stack:
            variable = stack[-1]
            wanted = given.get(variable, variable)
            pending = [] if variable in done or wanted.apply is None else [
                each for each in wanted.apply.inputs if each not in done]
            if pending and variable in opened:
                raise InternalError(f"the replacement of {variable.label} depends on itself")
            opened.add(variable)
            stack.extend(reversed(pending))
            if not pending:
                done.setdefault(stack.pop(), self._remade(wanted, done))
        return done

    def _remade(self, variable: Variable, done: Mapping[Variable, Variable]) -> Variable:
        if variable.apply is None:
            return self.interner.leaf(variable)
        old = variable.apply
        made = self.interner.apply(old.op, [done[each] for each in old.inputs], old.source, old)
        self.admit((made,))
        made.outputs[variable.index].name = made.outputs[variable.index].name or variable.name
        return made.outputs[variable.index]

    def _seen(self, variable: Variable) -> Variable:
        found = self._known.get(variable)
        if found is None:
            found = self._known[variable] = self.interner.leaf(variable)
        return found

    def _new_nodes(self, variables: list[Variable]) -> list[Apply]:
        """Nodes not yet interned, inputs before readers."""
        order: dict[Apply, None] = {}
        stack = [(variable.apply, False) for variable in reversed(variables)]
        while stack:
            node, expanded = stack.pop()
            if node is None or node in order or node.outputs[0] in self._known:
                continue
            if expanded:
                order[node] = None
                continue
            stack.append((node, True))
            stack.extend((each.apply, False) for each in reversed(node.inputs) if each.apply is not None)
        return list(order)


_STILL_NODES = 64


class Context:
    """One sweep as a rule sees it."""

    def __init__(self, graph: FunctionGraph, target: Target, vocabulary: Vocabulary | None = None) -> None:
        self.graph = graph
        self.target = target
        self.vocabulary = vocabulary or Vocabulary(graph)
        self.asked_readers = False
        self._stands_for: dict[Variable, Variable | None] = {}
        self._shapes: dict[Callable[[Apply], bool], frozenset[tuple[int | None, ...]]] = {}
        self.declined: list[tuple[Apply, str]] = []

    def readers(self, variable: Variable) -> int | None:
        """How often a variable is read, counting once more for each output or update that it is.

        None for a variable inside what this sweep has made: its readers are known in the next sweep, so the rule waits.
        """
        self.asked_readers = True
        old = self.old_variable(variable)
        return None if old is None else self._uses[old]

    def reader_nodes(self, variable: Variable) -> list[Apply]:
        """The nodes that read the variable; none for one that this sweep has made (the rule is asked again)."""
        self.asked_readers = True
        return self.graph.readers.get(variable, [])

    def old_readers(self, variable: Variable) -> list[Apply] | None:
        """The nodes of the graph at the start of the sweep that read the variable or what it replaced; None if not known."""
        self.asked_readers = True
        old = self.old_variable(variable)
        return None if old is None else self.graph.readers.get(old, [])

    def old_variable(self, variable: Variable) -> Variable | None:
        """The variable at the start of the sweep in whose place this one stands (itself, perhaps); None if it is not one."""
        return variable if variable in self._uses else self._stands_for.get(variable)

    def old_node(self, node: Apply) -> Apply | None:
        """The node at the start of the sweep in whose place a node stands now."""
        old = self.old_variable(node.outputs[0])
        return None if old is None else old.apply

    def note_replaced(self, old: Sequence[Variable], new: Sequence[Variable]) -> None:
        """Note that in this sweep `new` came in the place of `old`, so it will have the readers of `old`."""
        for before, after in zip(old, new, strict=True):
            if after not in self._uses:
                self._stands_for[after] = before if self._stands_for.get(after, before) is before else None

    def has_one_reader(self, variable: Variable) -> bool:
        """Whether exactly one node, and no output or update, reads the variable (False also where that is not known yet)."""
        return self.readers(variable) == 1 and not self.is_result(variable)

    def is_result(self, variable: Variable) -> bool:
        """Whether it is an output or the new value of an update."""
        return self.old_variable(variable) in self.results

    def is_still(self, variable: Variable) -> bool:
        """Whether a variable depends on nothing but constants and state that the function does not update.

        What is computed from such alone runs once for each change of that state, not on every call.  Only the
        few nodes nearest are looked at; where there are more the answer is False.
        """
        stack, seen = [variable], 0
        while stack:
            each = stack.pop()
            seen += 1
            if seen > _STILL_NODES or each in self._changing:
                return False
            stack.extend(each.apply.inputs if each.apply is not None else ())
        return True

    @cached_property
    def _changing(self) -> frozenset[Variable]:
        """The leaves that differ from call to call: inputs, and state that is updated."""
        return frozenset(self.graph.inputs) | {target for target, new in self.graph.updates if new is not target}

    def has_op(self, op_class: type[Op]) -> bool:
        """Whether the graph has a node of an op class."""
        return op_class in self._op_classes

    def shapes_of(self, wanted: Callable[[Apply], bool]) -> frozenset[tuple[int | None, ...]]:
        """The shapes of the first results of those nodes, at the start of the sweep, that a function says yes to."""
        if wanted not in self._shapes:
            self._shapes[wanted] = frozenset(node.outputs[0].type.shape for node in self.graph.nodes if wanted(node))
        return self._shapes[wanted]

    def has_scalar(self, name: str) -> bool:
        """Whether the graph has an elementwise node of a scalar operation."""
        return name in self._scalars

    @cached_property
    def _scalars(self) -> frozenset[str]:
        return frozenset(getattr(node.op, "scalar", "") for node in self.graph.nodes)

    @cached_property
    def _op_classes(self) -> frozenset[type[Op]]:
        return frozenset(type(node.op) for node in self.graph.nodes)

    @cached_property
    def results(self) -> frozenset[Variable]:
        """Outputs and new values of updates at the start of the sweep."""
        return frozenset(self.graph.results)

    @cached_property
    def _uses(self) -> dict[Variable, int]:
        uses: dict[Variable, int] = {}
        for node in self.graph.nodes:
            for variable in node.inputs:
                uses[variable] = uses.get(variable, 0) + 1
            for output in node.outputs:
                uses.setdefault(output, 0)
        for variable in self.graph.results:
            uses[variable] = uses.get(variable, 0) + 1
        return uses

    def intern(self, variable: Variable) -> Variable:
        """The interned form of an expression, for comparing with `is`."""
        return self.vocabulary.intern([variable], ())[0]

    def decline(self, node: Apply, reason: str) -> None:
        """For laws over the whole graph: note a reason not to rewrite at a node."""
        self.declined.append((node, reason))
