"""Bind: make every shape of a captured graph known, from the shapes of its leaves.

Shapes that depend on *values* (a slice bound that is an input) are found by evaluating the few scalars they depend on with
the references.  Each of these becomes a `Guard`: on a later call with the same leaf shapes the guards tell whether the
program made for the earlier values serves.
"""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import dtypes
from ..errors import InternalError, UserError
from ..graph import Apply, Constant, FunctionGraph, TensorType, Variable
from ..graph.captured import Interner
from ..ops.shape import Shape
from .interpret import evaluate, run_reference
from .run_errors import binding_error

Array = np.ndarray[Any, Any]
_FOLDED_ELEMENTS = 1024


@dataclass(frozen=True)
class Guard:
    """A node whose output shapes depend on the values of some variables, and the types it had when it was bound."""

    op: Any
    input_types: tuple[TensorType, ...]
    values: tuple[tuple[int, Variable], ...]
    types: tuple[TensorType, ...]

    def holds(self, bindings: Mapping[Variable, Array]) -> bool:
        """Whether the output types are the same for these values of the bound leaves."""
        values = evaluate([variable for _, variable in self.values], bindings)
        found = self.op.infer_bound(self.input_types, dict(zip((place for place, _ in self.values), values, strict=True)))
        return tuple(found) == self.types


@dataclass(frozen=True)
class BoundGraph:
    """A graph with static shapes everywhere; `leaves` maps its leaves to those of the captured graph, `variables` every variable
    of the captured graph to its own."""

    graph: FunctionGraph
    leaves: dict[Variable, Variable]
    guards: tuple[Guard, ...]
    variables: dict[Variable, Variable]


def bind(graph: FunctionGraph, arrays: Mapping[Variable, Array]) -> BoundGraph:
    """Bind a captured graph to the arrays that its leaves have in this call (only shapes are kept, but for guards)."""
    binder = _Binder(arrays)
    for node in graph.nodes:
        binder.add(node)
    inputs = tuple(binder.variable(variable) for variable in graph.inputs)
    outputs = tuple(binder.variable(variable) for variable in graph.outputs)
    updates = tuple((binder.variable(target), binder.variable(new)) for target, new in graph.updates)
    bound = FunctionGraph(inputs, outputs, updates, binder.interner)
    return BoundGraph(bound, {new: old for old, new in binder.leaves.items()}, tuple(binder.guards), binder.memo)


class _Binder:
    def __init__(self, arrays: Mapping[Variable, Array]) -> None:
        self.arrays = arrays
        self.interner = Interner()
        self.memo: dict[Variable, Variable] = {}
        self.leaves: dict[Variable, Variable] = {}
        self.guards: list[Guard] = []

    def variable(self, variable: Variable) -> Variable:
        """The bound counterpart of a variable of the captured graph."""
        if variable in self.memo:
            return self.memo[variable]
        if variable.apply is not None:
            raise InternalError(f"{variable!r} is used before it is bound")
        if isinstance(variable, Constant):
            new: Variable = self.interner.constant(variable)
        else:
            new = Variable(variable.type.with_shape(self.arrays[variable].shape), variable.name)
            new._source = variable.source
            self.leaves[variable] = new
        self.memo[variable] = new
        return new

    def add(self, node: Apply) -> None:
        """Bind one node whose inputs are bound."""
        inputs = [self.variable(variable) for variable in node.inputs]
        results = self._folded(node, inputs)
        if results is None:
            types = self._types(node, inputs)
            results = self.interner.apply(node.op, inputs, node.source, types=types).outputs
            for old, new in zip(node.outputs, results, strict=True):
                new.name = new.name or old.name
        self.memo.update(zip(node.outputs, results, strict=True))

    def _folded(self, node: Apply, inputs: list[Variable]) -> tuple[Variable, ...] | None:
        """Constants where the node is a shape or small integer arithmetic on constants."""
        if isinstance(node.op, Shape):
            return (self._constant(np.array(inputs[0].type.static_shape, np.int64)),)
        small = all(isinstance(variable, Constant) and variable.data.size <= _FOLDED_ELEMENTS for variable in inputs)
        if not (small and inputs) or node.op.has_effect or any(dtypes.is_float(output.dtype) for output in node.outputs):
            return None
        if any(size is None or size > _FOLDED_ELEMENTS for output in node.outputs for size in output.type.shape):
            return None
        return tuple(self._constant(array) for array in run_reference(node, [self._value(variable) for variable in inputs]))

    def _constant(self, array: Array) -> Constant:
        return self.interner.constant(Constant(array))

    def _value(self, variable: Variable) -> Array:
        if isinstance(variable, Constant):
            return variable.data
        (value,) = evaluate([variable], {new: self.arrays[old] for old, new in self.leaves.items()})
        return value

    def _types(self, node: Apply, inputs: list[Variable]) -> tuple[TensorType, ...]:
        op, input_types = node.op, tuple(variable.type for variable in inputs)
        values = {place: self._value(inputs[place]) for place in op.value_inputs}
        try:
            types = tuple(op.infer_bound(input_types, values))
        except UserError as error:
            raise binding_error(error, node, input_types) from None
        if not all(type.is_static for type in types):
            raise InternalError(f"{op} does not say its shapes for inputs {', '.join(map(str, input_types))}")
        if any(not isinstance(inputs[place], Constant) for place in op.value_inputs):
            places = tuple((place, inputs[place]) for place in op.value_inputs)
            self.guards.append(Guard(op, input_types, places, types))
        return types
