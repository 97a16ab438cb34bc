"""Variables: the values of an expression. Leaves (inputs, constants, shared variables) and outputs of nodes."""
from __future__ import annotations

import hashlib
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from .. import dtypes
from .operators import Operators, meaning
from .provenance import Sources, current_source
from .scope import scopes_of
from .types import TensorType

if TYPE_CHECKING:
    from .node import Apply

LeafT = TypeVar("LeafT", bound="Variable")


class Variable(Operators):
    """A symbolic value. Only `name` and `tag` may be changed after it is made; neither is part of its identity.

    `apply` is the node that computes it (None for a leaf) and `index` which of the node's outputs it is.
    """

    __slots__ = ("__weakref__", "_source", "_tag", "apply", "index", "name", "type")

    def __init__(self, type: TensorType, name: str | None = None, apply: Apply | None = None, index: int = 0) -> None:
        self.type = type
        self.name = name
        self.apply = apply
        self.index = index
        self._tag: SimpleNamespace | None = None
        self._source: Sources = current_source() if apply is None else ()

    @property
    def tag(self) -> SimpleNamespace:
        """A scratchpad for the user; never part of the meaning."""
        if self._tag is None:
            self._tag = SimpleNamespace()
        return self._tag

    @property
    def source(self) -> Sources:
        """The user's lines that made it."""
        return self._source if self.apply is None else self.apply.source

    @property
    def scopes(self) -> tuple[str, ...]:
        """The name scopes in which it was made (`name_scope`): several where rewriting has joined what was apart."""
        return scopes_of(self.source)

    @property
    def owner(self) -> Apply | None:
        """Theano's name of `apply`."""
        return self.apply

    @property
    def dtype(self) -> str:
        """Name of the dtype."""
        return self.type.dtype

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.type.shape)

    @property
    def static_shape(self) -> tuple[int | None, ...]:
        """The shape as far as it is known without running; `.shape` is the symbolic one."""
        return self.type.shape

    @property
    def broadcastable(self) -> tuple[bool, ...]:
        """For each axis whether its size is known to be 1 (Theano's broadcast pattern; nothing here depends on it)."""
        return tuple(size == 1 for size in self.type.shape)

    @property
    def label(self) -> str:
        """Its name, or a short description where it has none."""
        if self.name:
            return self.name
        return f"<{self.type}>" if self.apply is None else f"{self.apply.op}"

    def clone(self) -> Variable:
        """A new leaf of its type and name. (Of an expression, with other variables in it: `sc.clone`.)"""
        return Variable(self.type, self.name)

    def __repr__(self) -> str:
        return f"{self.label}: {self.type}" if self.name else f"{self.label}"

    def _repr_latex_(self) -> str | None:
        """Its mathematics, for notebooks."""
        return meaning("latex")(self)

    def __reduce__(self) -> Any:
        if self.apply is not None:
            return _output, (self.apply, self.index)
        return _leaf, (self.type, self.name, self._source)


class Constant(Variable):
    """A leaf with a fixed value (a read-only array)."""

    __slots__ = ("_key", "data")

    def __init__(self, data: np.ndarray[Any, Any], name: str | None = None) -> None:
        array = np.array(data, order="C", copy=True)
        array.flags.writeable = False
        super().__init__(TensorType(dtypes.canonical(array.dtype), array.shape), name)
        self.data = array
        self._key: tuple[Any, ...] | None = None

    def clone(self) -> Constant:
        """The same value and name."""
        return Constant(self.data, self.name)

    @property
    def key(self) -> tuple[Any, ...]:
        """Equal for constants with the same type and bytes."""
        if self._key is None:
            raw = self.data.tobytes()
            self._key = (self.type, raw if len(raw) <= 64 else hashlib.sha256(raw).digest())
        return self._key

    @property
    def label(self) -> str:
        """Its name or its value; large ones are abbreviated."""
        if self.name:
            return self.name
        if self.data.size == 1:
            return f"{self.data.item()!r}" if self.ndim == 0 else f"{self.data.tolist()!r}"
        return f"constant{list(self.data.shape)}" if self.data.size > 6 else f"{self.data.tolist()!r}"

    def __reduce__(self) -> Any:
        return _constant, (self.data, self.name, self._source)


def _output(apply: Apply, index: int) -> Variable:
    return apply.outputs[index]


def _leaf(type: TensorType, name: str | None, source: Sources = ()) -> Variable:
    return with_source(Variable(type, name), source)


def _constant(data: np.ndarray[Any, Any], name: str | None, source: Sources = ()) -> Constant:
    return with_source(Constant(data, name), source)


def with_source(leaf: LeafT, source: Sources) -> LeafT:
    """A leaf that was made again (from a file, say), with the place where the user made it first."""
    leaf._source = source
    return leaf
