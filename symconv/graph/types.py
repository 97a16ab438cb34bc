"""The type of a variable: dtype and static shape."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .. import dtypes
from ..errors import GraphTypeError, explain_error

Shape = tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class TensorType:
    """Dtype and shape of a tensor variable; None is a size known only when the function is called.

    >>> print(TensorType("float32", (None, 1, 28, 28)))
    float32[?,1,28,28]
    """

    dtype: str
    shape: Shape

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def is_static(self) -> bool:
        """Whether every size is known."""
        return None not in self.shape

    @property
    def static_shape(self) -> tuple[int, ...]:
        """The shape where every size is known (an InternalError otherwise)."""
        from ..errors import InternalError

        sizes = tuple(size for size in self.shape if size is not None)
        if len(sizes) != len(self.shape):
            raise InternalError(f"the shape of {self} is asked for before it is known")
        return sizes

    @property
    def broadcastable(self) -> tuple[bool, ...]:
        """For each axis whether its size is known to be 1 (Theano's broadcast pattern)."""
        return tuple(size == 1 for size in self.shape)

    def with_shape(self, shape: Sequence[int | None]) -> TensorType:
        """The same dtype with another shape."""
        return TensorType(self.dtype, tuple(shape))

    def with_dtype(self, dtype: str) -> TensorType:
        """The same shape with another dtype."""
        return TensorType(dtype, self.shape)

    def accepts(self, other: TensorType) -> bool:
        """Whether a value of type `other` may stand where this type is asked for (no size contradicts another)."""
        return (self.dtype == other.dtype and self.ndim == other.ndim
                and all(a is None or b is None or a == b for a, b in zip(self.shape, other.shape, strict=True)))

    def meet(self, other: TensorType) -> TensorType:
        """What is known when both types hold; they must accept each other."""
        return self.with_shape([b if a is None else a for a, b in zip(self.shape, other.shape, strict=True)])

    def __call__(self, name: str | None = None) -> Any:
        """A variable of this type, as Theano's types make them; there, a shape of bools says which sizes are 1.

        >>> print(TensorType("float32", (False, True, False))("x").type)
        float32[?,1,?]
        """
        from .variable import Variable

        shape = [(1 if size else None) if isinstance(size, bool) else size for size in self.shape]
        return Variable(make_type(self.dtype, shape), name)

    def __reduce__(self) -> Any:
        return TensorType, (self.dtype, self.shape)  # a frozen dataclass with slots pickles slowly by itself

    def __str__(self) -> str:
        return f"{self.dtype}[{','.join('?' if size is None else str(size) for size in self.shape)}]"


def make_type(dtype: object, shape: Sequence[int | None]) -> TensorType:
    """A checked TensorType from what a user passes: any dtype NumPy takes, a sequence of sizes or None."""
    sizes: list[int | None] = []
    for size in shape:
        if size is not None and (isinstance(size, bool) or not hasattr(size, "__index__") or int(size) < 0):
            raise GraphTypeError(explain_error("a static shape holds whole numbers from 0, or None for unknown",
                                               repr(tuple(shape))))
        sizes.append(None if size is None else int(size))
    return TensorType(dtypes.canonical(dtype), tuple(sizes))
