"""Shared variables: state that functions read and update."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import dtypes
from ..config import config
from ..errors import ArgumentError, GraphTypeError, InputTypeError, ShapeError, explain_error
from ..graph import TensorType, Variable
from ..graph.provenance import Sources
from ..graph.types import make_type
from ..graph.variable import with_source
from ..ops.state import register_shared_constructor
from .container import Container

Array = np.ndarray[Any, Any]


class SharedVariable(Variable):
    """A variable with a value that lives between calls; made by `shared`.

    `default_update`: an expression that every function using the variable computes and stores back, unless the
    function's updates name the variable or it was compiled with `no_default_updates=True`.
    """

    __slots__ = ("container", "default_update")

    def __init__(self, type: TensorType, container: Container, name: str | None = None) -> None:
        super().__init__(type, name)
        self.container = container
        self.default_update: Variable | None = None

    def get_value(self, borrow: bool = False) -> Array:
        """The value: a copy, or with `borrow=True` the array itself, which later updates may change in place."""
        return self.container.lend() if borrow else self.container.copied()

    def set_value(self, value: Any, borrow: bool = False) -> None:
        """Replace the value; a copy is kept, or with `borrow=True` the array itself where it fits as it is.

        Raises:
            InputTypeError: another dtype that would lose something, or another rank.
            ShapeError: a size that contradicts the variable's static shape.
        """
        stored = _stored(value, self.type, f"the shared variable {self.label!r}", borrow)
        self.container.replace(stored, _is_borrowed(stored, value))

    def zero(self, borrow: bool = False) -> None:
        """Set every element to 0; with `borrow=True` in the array itself."""
        if borrow:
            self.container.fill(0)
        else:
            self.container.alone(lambda: self.container.replace(np.zeros_like(self.container.array)))

    def clone(self) -> SharedVariable:
        """Another variable with the same value: what is set or updated through one of them is seen in the other.

        Its `default_update` is its own, so a function can update the value by default where others only read it.
        Theano: `SharedVariable.clone`, `theano.clone(variable, share_inputs=False)`.

        >>> running = shared(1.0)
        >>> counted = running.clone()
        >>> counted.set_value(2.0)
        >>> float(running.get_value())
        2.0
        """
        return SharedVariable(self.type, self.container, self.name)

    def __bool__(self) -> bool:
        """True where it has axes: `W or make_it()`, `if not b:` ask whether there is one. A scalar could be meant by its value."""
        return self.ndim > 0 or super().__bool__()

    def __reduce__(self) -> Any:
        return _rebuild, (self.type, self.container, self.name, self.source), (None, {"default_update": self.default_update})


def _rebuild(type: TensorType, container: Container, name: str | None, source: Sources = ()) -> SharedVariable:
    return with_source(SharedVariable(type, container, name), source)


def shared(value: Any, name: str | None = None, borrow: bool = False, shape: Sequence[int | None] | None = None,
           strict: bool = False, broadcastable: Sequence[bool] | None = None) -> SharedVariable:
    """State with this initial value.

    Args:
        value: an array (its dtype is kept), a list, or a number; a Python float becomes `config.floatX`.
        name: for printing and for keyword use.
        borrow: keep the array itself instead of a copy.
        shape: static sizes that `set_value` and updates must keep; by default the rank is fixed and sizes may change.
        strict: refuse anything but NumPy arrays.
        broadcastable: Theano's way to say which sizes stay 1; `shape` says more.

    Raises:
        GraphTypeError: a symbolic variable, or something that is no numeric array.
        ArgumentError: `shape` and `broadcastable`, or an entry too many or too few.

    Theano: `theano.shared` (there, a Python float became float64 and a list a generic object).

    >>> import numpy as np
    >>> weights = shared(np.zeros((2, 3), "float32"), name="weights")
    >>> weights.type.dtype, weights.get_value().shape
    ('float32', (2, 3))
    """
    if isinstance(value, Variable):
        raise GraphTypeError(explain_error("the value of a shared variable is an array, not a symbolic variable", repr(value),
                                           "give an array, or use the expression itself"))
    if strict and not isinstance(value, np.ndarray):
        raise GraphTypeError(explain_error("a strict shared variable takes a NumPy array", type(value).__name__))
    array = np.asarray(value, dtype=config.floatX if isinstance(value, float) else None)
    if array.dtype.kind in "OUSV" and array.dtype.name != "bfloat16":
        raise GraphTypeError(explain_error("the value of a shared variable is a numeric array",
                                           f"{type(value).__name__} of dtype {array.dtype}"))
    type_ = make_type(array.dtype, _kept_sizes(array.ndim, shape, broadcastable))
    stored = _stored(array, type_, f"the shared variable {name!r}", borrow)
    return SharedVariable(type_, Container(stored, _is_borrowed(stored, value)), name)


def _kept_sizes(ndim: int, shape: Sequence[int | None] | None, broadcastable: Sequence[bool] | None) -> Sequence[int | None]:
    if broadcastable is None:
        return [None] * ndim if shape is None else shape
    if shape is not None or len(broadcastable) != ndim:
        raise ArgumentError(explain_error(f"broadcastable has one entry for each of the {ndim} axes, and no shape beside it",
                                          f"broadcastable={broadcastable!r}, shape={shape!r}"))
    return [1 if single else None for single in broadcastable]


def _stored(value: Any, type: TensorType, what: str, borrow: bool) -> Array:
    """The array that a container keeps: row-major, aligned, writable, native; the value itself only where it may be borrowed."""
    array = checked_value(value, type, what)
    if borrow and array is value:
        return np.require(array, requirements=["C", "A", "W"])
    return np.array(array, order="C", copy=True)


def _is_borrowed(stored: Array, value: Any) -> bool:
    """Whether the user's array (or what a view, subclass or memory map of it shows) is the memory that is kept."""
    return isinstance(value, np.ndarray) and np.may_share_memory(stored, value)


def checked_value(value: Any, type: TensorType, what: str, allow_downcast: bool | None = None, strict: bool = False) -> Array:
    """`value` as an array of `type`, or an error that names `what`, what was found and what to do.

    A Python number or list of numbers takes the type's dtype if it loses nothing but float precision; an array must have
    a dtype that converts without loss, unless `allow_downcast`.
    """
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise InputTypeError(explain_error(f"{what} takes an array without a mask", "a masked array with masked elements",
                                           "fill them first: numpy's array.filled(value)"))
    array = _converted(value, type, what, allow_downcast, strict)
    if array.ndim != type.ndim:
        raise InputTypeError(explain_error(f"{what} has rank {type.ndim}", f"an array of rank {array.ndim}, shape {array.shape}"))
    for axis, (size, static) in enumerate(zip(array.shape, type.shape, strict=True)):
        if static is not None and size != static:
            raise ShapeError(explain_error(f"{what} has size {static} on axis {axis}",
                                           f"size {size}: shape {array.shape} for type {type}"))
    return array


def _converted(value: Any, type: TensorType, what: str, allow_downcast: bool | None, strict: bool) -> Array:
    wanted = dtypes.numpy_dtype(type.dtype)
    if isinstance(value, np.ndarray) and value.dtype == wanted:
        return value
    if isinstance(value, Variable):
        raise InputTypeError(explain_error(f"{what} takes an array", f"the symbolic variable {value!r}",
                                           "call .eval() on it, or use it when building the expression"))
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise InputTypeError(explain_error(f"{what} takes a numeric array of dtype {type.dtype}", str(error))) from None
    if array.dtype.kind in "OUSV" and array.dtype.name != "bfloat16":
        raise InputTypeError(explain_error(f"{what} takes a numeric array of dtype {type.dtype}",
                                           f"{value.__class__.__name__} of dtype {array.dtype}"))
    if strict and array.dtype != wanted:
        raise InputTypeError(explain_error(f"{what} is strict and takes only dtype {type.dtype}", f"dtype {array.dtype}"))
    plain = not isinstance(value, (np.ndarray, np.generic))
    if not (allow_downcast or _loses_nothing(array, wanted, plain and allow_downcast is None)):
        raise InputTypeError(explain_error(f"{what} has dtype {type.dtype}",
                                           f"dtype {array.dtype}, which would lose precision or range",
                                           f"convert it with numpy's astype({type.dtype!r}), or pass allow_input_downcast=True"))
    return array.astype(wanted)


def _loses_nothing(array: Array, wanted: np.dtype[Any], plain: bool) -> bool:
    """Whether conversion is free of loss; `plain` Python numbers may lose float precision, and integers must be in range."""
    if np.can_cast(array.dtype, wanted, "safe") or (plain and array.size == 0):
        return True
    if array.dtype.kind in "biu" and wanted.kind == "f":
        return plain or _integers_exact(array, wanted)
    if plain and array.dtype.kind == "f" and wanted.kind == "f":
        return True
    if array.dtype.kind in "iu" and wanted.kind in "iu" and (plain or array.size == 1):
        return bool(np.all(array.astype(wanted) == array))
    return False


def _integers_exact(array: Array, wanted: np.dtype[Any]) -> bool:
    """Whether every integer stays itself as a float; one that rounds up past its dtype's end does not."""
    with np.errstate(over="ignore"):
        floats = array.astype(wanted)
    limit = 2.0 ** (8 * array.dtype.itemsize - (array.dtype.kind == "i"))
    inside = np.isfinite(floats) & (floats.astype(np.float64) < limit)
    return bool(np.all(inside)) and bool(np.all(floats.astype(array.dtype) == array))


def check_update(target: Any, new: Variable) -> Variable:
    """The new value of an update as the target's type, or an error; only casts that lose nothing are made."""
    if not isinstance(target, SharedVariable):
        raise GraphTypeError(explain_error("only a shared variable can be updated", f"{target!r}",
                                           "make it with sc.shared(...)", getattr(target, "source", ())))
    if not isinstance(new, Variable):
        from ..graph.operators import meaning

        new = meaning("as_variable")(new, dtype=target.dtype)
    if new.dtype != target.dtype:
        if not _update_may_cast(new.dtype, target.dtype):
            raise GraphTypeError(explain_error(f"the update of {target.label!r} has another dtype",
                                               f"{new.type} for {target.type}", f"cast it: T.cast(new, {target.dtype!r})",
                                               new.source))
        new = new.astype(target.dtype)
    if new.ndim != target.ndim:
        raise GraphTypeError(explain_error(f"the update of {target.label!r} has another rank", f"{new.type} for {target.type}",
                                           "reshape or dimshuffle it", new.source))
    if not target.type.accepts(new.type):
        raise ShapeError(explain_error(f"the update of {target.label!r} has another shape", f"{new.type} for {target.type}",
                                       where=new.source))
    return new


def _update_may_cast(new: str, target: str) -> bool:
    if not dtypes.is_float(target):
        return np.can_cast(dtypes.numpy_dtype(new), dtypes.numpy_dtype(target), "safe")
    return not dtypes.is_float(new) or dtypes.itemsize(new) <= dtypes.itemsize(target)



register_shared_constructor(shared)
