"""The adjoint of broadcasting: summing a gradient over what was broadcast.

Broadcasting is NumPy's at run time too: an axis of static size None may turn out to have size 1 and be stretched.  Where
that is known statically a plain sum does it; where it is not, `SumTo` decides when the shapes are bound.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from ..errors import GraphTypeError, ShapeError, explain_error
from ..graph import Apply, Op, TensorType, Variable, apply_op
from ..graph.node import Array
from .elementwise import Elementwise
from .reductions import Reduce


@dataclass(frozen=True, slots=True)
class SumTo(Op):
    """`g` summed over every axis in which `like` has size 1 and `g` has not; the result has the shape of `like`.

    Inputs: g, like (of equal rank; only the shape of `like` matters).  Once shapes are bound, `lower` says which plain
    operation it is, so that no kernel is needed.
    """

    def infer(self, g: TensorType, like: TensorType) -> tuple[TensorType, ...]:
        """The shape of `like`; a ShapeError where `g` is no broadcast form of it."""
        if g.ndim != like.ndim:
            raise GraphTypeError(explain_error("a gradient is summed to a shape of the same rank", f"{g} to {like}"))
        sizes: list[int | None] = []
        for own, target in zip(g.shape, like.shape, strict=True):
            if target not in (None, 1) and own not in (None, target):
                raise ShapeError(explain_error("a gradient cannot be summed to this shape", f"{g} to {like}"))
            sizes.append(1 if own == 1 else target)
        return (g.with_shape(sizes),)

    def lower(self, types: Sequence[TensorType]) -> Reduce | None:
        """With static types of both inputs: the reduction of `g` that this is; None where it is `g` itself."""
        g, like = types
        pairs = zip(g.static_shape, like.static_shape, strict=True)
        axes = tuple(axis for axis, (own, target) in enumerate(pairs) if own != target)
        return Reduce("sum", axes, True, g.dtype) if axes else None

    def grad(self, apply: Apply, cotangents: Sequence[Variable | None]) -> Sequence[Variable | None]:
        """The cotangent stretched to the shape of `g`."""
        (gz,) = cotangents
        return (None if gz is None else broadcast_like(gz, apply.inputs[0]), None)

    def reference(self, g: Array, like: Array) -> tuple[Array, ...]:
        """A NumPy sum over the stretched axes."""
        reduction = self.lower([TensorType(array.dtype.name, array.shape) for array in (g, like)])
        return (g,) if reduction is None else reduction.reference(g)

    def __str__(self) -> str:
        return "sum_to"


def unbroadcast(g: Variable, like: Variable, beside: Sequence[Variable] | None = None, fixed: int = 0) -> Variable:
    """The gradient `g` of a broadcast result, summed to the shape of the argument `like`.

    `beside` are the arguments that `like` was broadcast with, which tell where it cannot have been stretched; None: nothing
    is known of them.  The last `fixed` axes take no part in the broadcasting.
    """
    lead = g.ndim - like.ndim
    targets = ((1,) * lead + like.type.shape)[:g.ndim - fixed]
    known = tuple(axis for axis, size in enumerate(targets) if axis < lead or (size == 1 and g.type.shape[axis] != 1))
    result = apply_op(Reduce("sum", known, True, g.dtype), g) if known else g
    if lead:
        from .shape import dimshuffle

        result = dimshuffle(result, tuple(range(lead, g.ndim)))
    doubtful = any(size is None and _may_stretch(axis - g.ndim, g, like, beside) for axis, size in enumerate(targets))
    return apply_op(SumTo(), result, like) if doubtful else result


def _may_stretch(axis: int, g: Variable, like: Variable, beside: Sequence[Variable] | None) -> bool:
    """Whether the axis (counted from the last: -1, -2, …) of `like`, of unknown size, may have been stretched."""
    if g.type.shape[axis] == 1:
        return False
    if beside is None:
        return True
    origin = shape_origin(like)
    return any(-axis <= other.ndim and other.type.shape[axis] != 1 and shape_origin(other) is not origin for other in beside)


def shape_origin(variable: Variable) -> Variable:
    """A variable that is known to have the same shape: where elementwise operations on one variable lead back to.

    Each node is looked at once in its life.
    """
    stack = [] if variable.apply is None else [variable.apply]
    while stack:
        wide = _shape_givers(stack[-1])
        waiting = [each.apply for each in wide if each.apply is not None and each.apply not in _origins]
        if waiting:
            stack.extend(waiting)
            continue
        node = stack.pop()
        roots = {_origin(each) for each in wide}
        root = roots.pop() if len(roots) == 1 else None
        _origins[node] = root if root is not None and root.ndim == node.outputs[0].ndim else None
    return _origin(variable)


_origins: WeakKeyDictionary[Apply, Variable | None] = WeakKeyDictionary()


def _origin(variable: Variable) -> Variable:
    found = None if variable.apply is None else _origins[variable.apply]
    return variable if found is None else found


def _shape_givers(node: Apply) -> list[Variable]:
    """The inputs that give an elementwise node its shape, without those of size 1 throughout; none for other nodes."""
    if not isinstance(node.op, Elementwise):
        return []
    return [each for each in node.inputs if any(size != 1 for size in each.type.shape)]


def broadcast_like(x: Variable, like: Variable) -> Variable:
    """`x` stretched to the shape of `like`, as NumPy's `broadcast_to`; `x` itself where that is known to change nothing."""
    if x.type.shape == like.type.shape and x.type.is_static:
        return x
    from .shape import broadcast_to, shape_sizes

    return broadcast_to(x, shape_sizes(like))
