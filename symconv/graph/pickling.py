"""Pickling and deep-copying nodes of any depth with Python's default recursion limit.

A pickler recurses into what `__reduce__` returns.  The first node it meets therefore returns all its ancestors, inputs
before readers, as one flat list before its own inputs: each of them is reached when its inputs are already in the
pickler's memo.  `_listed` holds the nodes so announced; they return only their own inputs.  A marker at the end of
the list empties it again, so that nothing outlives one walk.
"""
from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .node import Apply, Op
    from .types import TensorType
    from .variable import Variable


class _Listed(threading.local):
    def __init__(self) -> None:
        self.nodes: set[int] = set()


_listed = _Listed()


class _EndOfList:
    """Pickled after the flat list; empties the marks of this walk."""

    def __reduce__(self) -> Any:
        _listed.nodes.clear()
        return _EndOfList, ()


def reduce_apply(node: Apply) -> Any:
    """What `Apply.__reduce__` returns (see the module's text)."""
    own = (node.op, node.inputs, tuple(output.type for output in node.outputs),
           tuple(output.name for output in node.outputs), node.source)
    if id(node) in _listed.nodes:
        _listed.nodes.discard(id(node))
        return _rebuild, ((), *own)
    from .traversal import toposort

    below = toposort(node.inputs)
    _listed.nodes = {id(ancestor) for ancestor in below}
    return _rebuild, ((*below, _EndOfList()), *own)


def _rebuild(_below: tuple[Any, ...], op: Op, inputs: tuple[Variable, ...], types: tuple[TensorType, ...],
             names: tuple[str | None, ...], source: Any) -> Apply:
    from .node import Apply

    node = Apply(op, inputs, types, source)
    for output, name in zip(node.outputs, names, strict=True):
        output.name = name
    return node
