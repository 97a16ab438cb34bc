"""Evaluate an expression node by node with the NumPy references: the oracle, and the evaluator of shape scalars."""
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import InternalError, UserError, explain_error
from ..graph import Apply, Constant, Variable, toposort

Array = np.ndarray[Any, Any]


def evaluate(outputs: Iterable[Variable], bindings: Mapping[Variable, Any] | None = None) -> list[Array]:
    """Values of `outputs` when the leaves have the values of `bindings` (shared variables their own if not given)."""
    outputs = list(outputs)
    values: dict[Variable, Array] = {variable: np.asarray(value) for variable, value in (bindings or {}).items()}
    for node in toposort(outputs):
        if all(output in values for output in node.outputs):
            continue
        results = run_reference(node, [leaf_value(variable, values) for variable in node.inputs])
        values.update(zip(node.outputs, results, strict=True))
    return [leaf_value(output, values) for output in outputs]


def run_reference(node: Apply, arrays: list[Array]) -> tuple[Array, ...]:
    """The node's reference on arrays, with the dtypes of the results checked against the node's types."""
    with np.errstate(all="ignore"):
        results = tuple(np.asarray(result) for result in node.op.reference(*arrays))
    check_results(node, results)
    return results


def act(node: Apply, arrays: Sequence[Any]) -> None:
    """What the node does beside giving its results; an error of the user's is told with the line of the expression."""
    try:
        node.op.act(*arrays)
    except UserError as error:
        raise type(error)(explain_error(str(error), f"in {node.op}", where=node.source)) from None


def check_results(node: Apply, results: Sequence[Any]) -> None:
    """What a node's reference gave must have the node's dtypes and ranks."""
    for output, result in zip(node.outputs, results, strict=True):
        if result.dtype.name != output.dtype or result.ndim != output.ndim:
            raise InternalError(f"the reference of {node.op} gives {result.dtype.name} of rank {result.ndim}, "
                                f"its type is {output.type}")


def leaf_value(variable: Variable, values: Mapping[Variable, Array]) -> Array:
    """A variable's value: from `values`, a constant's, or a shared variable's own."""
    if variable in values:
        return values[variable]
    if isinstance(variable, Constant):
        return variable.data
    get_value = getattr(variable, "get_value", None)
    if get_value is None:
        raise InternalError(f"no value for {variable!r}")
    return np.asarray(get_value(borrow=True))
