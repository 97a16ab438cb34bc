"""Substitution: a copy of an expression with some variables replaced."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import GraphTypeError, explain_error
from .node import Apply, make_apply
from .operators import meaning
from .traversal import leaves, toposort
from .variable import Constant, Variable


def clone(output: Variable | Sequence[Variable], replace: Mapping[Variable, Any] | None = None, strict: bool = True,
          share_inputs: bool = True) -> Any:
    """The same expression with other variables in place of some; what does not depend on them is shared, not copied.

    Args:
        output: a variable, or a list or tuple of them. The result has the same form.
        replace: variable → its replacement, of a type that fits. Replacements are not searched themselves.
        strict: False casts replacements of another dtype.
        share_inputs: False puts new leaves (`Variable.clone`) in place of inputs and shared variables; a shared variable's has
            the same value and a default update of its own.

    Raises:
        GraphTypeError: a replacement has another dtype or rank, or sizes that contradict.

    Theano: `theano.clone`.
    """
    memo = {old: _fitting(old, new, strict) for old, new in (replace or {}).items()}
    outputs: list[Variable] = list(output) if isinstance(output, (list, tuple)) else [output]  # type: ignore[list-item]
    if not share_inputs:
        memo.update({leaf: leaf.clone() for leaf in leaves(outputs) if leaf not in memo and not isinstance(leaf, Constant)})
    for node in toposort(outputs):
        if any(each in memo for each in node.inputs) and not all(each in memo for each in node.outputs):
            _copy(node, memo)
    copied = [memo.get(each, each) for each in outputs]
    return type(output)(copied) if isinstance(output, (list, tuple)) else copied[0]


def _copy(node: Apply, memo: dict[Variable, Variable]) -> None:
    new = make_apply(node.op, [memo.get(each, each) for each in node.inputs], node.source)
    for old, fresh in zip(node.outputs, new.outputs, strict=True):
        fresh.name = old.name
        memo.setdefault(old, fresh)


def _fitting(old: Variable, new: Any, strict: bool) -> Variable:
    if not isinstance(old, Variable):
        raise GraphTypeError(explain_error("only symbolic variables can be replaced", f"{type(old).__name__} {old!r}"))
    value: Variable = new if isinstance(new, Variable) else meaning("as_variable")(new, dtype=old.dtype)
    if not strict and value.dtype != old.dtype:
        value = meaning("cast")(value, old.dtype)
    if not old.type.accepts(value.type):
        raise GraphTypeError(explain_error(f"the replacement of {old.label!r} has another type",
                                           f"{value.type} for {old.type}", where=value.source or old.source))
    return value
