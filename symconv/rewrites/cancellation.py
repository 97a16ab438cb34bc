"""Finding s · E without the division by s that E holds: what the gradient of a logarithm needs to stay finite.

The gradient of log(s) is u / s, and that of s = softmax(x), sigmoid(x) or exp(x) multiplies with s again.  Where s
underflows, (u / s) · s is NaN; in exact arithmetic it is u.  `cancel(s, E)` follows E through sums, products and moves (a
transposed s was divided by, and the quotient transposed back) to the divisions by s:

    s · (u / s) = u          s · (u / d) = (s · u) / d          s · (a · b) = (s · a) · b          s · (-a) = -(s · a)
    s · (a ± b) = s · a ± s · b      s · where(c, a, 0) = where(c, s · a, 0)
    s · moved_back(a) = moved_back(move(s) · a)      s · broadcast(a) = broadcast(s · a)
    s · Σ a = Σ (s · a) over axes in which s has size 1      move(s) · move(a) = move(s · a)

and answers None where no division is found.  The search looks at a bounded number of nodes.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence

from ..graph import Apply, Variable, apply_op
from ..ops import elementwise as e
from ..ops.basic_indexing import IncSubtensor, Subtensor
from ..ops.elementwise import Elementwise
from ..ops.integer_indexing import Gather, ScatterAdd
from ..ops.reductions import Reduce
from ..ops.shape import BroadcastTo, DimShuffle, Reshape, broadcast_to, shape_sizes
from ..ops.sizes import shape_source, vector_sizes
from ..ops.unbroadcast import SumTo
from .context import Context
from .values import shape_root, uniform_value

MAX_VISITS = 200
MAX_DEPTH = 16


class Canceller:
    """One search for divisions; see the module's text."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.visits = 0

    def cancel(self, s: Variable, quotient: Variable, depth: int = 0) -> Variable | None:
        """s · quotient without the division by s, of the shape of `quotient`; None where there is none."""
        node = quotient.apply
        self.visits += 1
        if node is None or depth > MAX_DEPTH or self.visits > MAX_VISITS:
            return None
        if isinstance(node.op, Elementwise):
            rule = _ELEMENTWISE.get(node.op.scalar)
            return None if rule is None else rule(self, s, node, depth + 1)
        return self._through_move(s, node, depth + 1)

    def _through_move(self, s: Variable, node: Apply, depth: int) -> Variable | None:
        """Where `node` copies, sums over axes in which s has size 1, or moves back what was divided by a moved s."""
        below = _same_divisor_below(s, node)
        if below is not None:
            inside = self.cancel(below, node.inputs[0], depth)
            return None if inside is None else apply_op(node.op, inside, *node.inputs[1:])
        if not isinstance(node.op, (DimShuffle, IncSubtensor, Reshape, ScatterAdd)):
            return None
        for reader in self.context.reader_nodes(s):
            place = moved_back_by(reader, node, s)
            if place is None:
                continue
            inside = self.cancel(reader.outputs[0], node.inputs[place], depth)
            if inside is not None:
                inputs = list(node.inputs)
                inputs[place] = inside
                return apply_op(node.op, *inputs)
        return None


def _same_divisor_below(s: Variable, node: Apply) -> Variable | None:
    """d such that s · node(a) = node(d · a): s itself under broadcasts and sums along which it is constant."""
    if isinstance(node.op, BroadcastTo):
        return s if s.ndim == node.inputs[0].ndim else None
    if isinstance(node.op, SumTo):
        return s if _is_stretched_no_more(s, node.inputs[1]) else None
    if isinstance(node.op, Reduce):
        fits = node.op.kind == "sum" and node.op.prologue is None and node.op.keepdims and s.ndim == node.inputs[0].ndim
        return s if fits and all(s.type.shape[axis] == 1 for axis in node.op.axes) else None
    made = s.apply
    same = made is not None and isinstance(node.op, DimShuffle) and made.op == node.op
    return made.inputs[0] if same and made is not None else None


def _is_stretched_no_more(s: Variable, like: Variable) -> bool:
    """Whether s surely has size 1 along every axis in which `like` has."""
    if s is like:
        return True
    node = s.apply
    if node is not None and isinstance(node.op, DimShuffle) and node.inputs[0].apply is not None:
        inner = node.inputs[0].apply
        if isinstance(inner.op, Reduce) and node.op.pattern == kept_pattern(inner.op.axes, s.ndim):
            return shape_root(inner.inputs[0]) is shape_root(like)
    if node is not None and isinstance(node.op, Reduce) and node.op.keepdims:
        s = node.inputs[0]
    return shape_root(s) is shape_root(like)


def kept_pattern(axes: Sequence[int], rank: int) -> tuple[int | None, ...]:
    """The dimshuffle that puts reduced axes back as axes of size 1.

    >>> kept_pattern((1,), 3)
    (0, None, 1)
    """
    rest = iter(range(rank))
    return tuple(None if axis in axes else next(rest) for axis in range(rank))


def moved_back_by(move: Apply, back: Apply, s: Variable) -> int | None:
    """The position of the input of `back` that it moves back to where s was before `move`; None where it does not."""
    if move.inputs[0] is not s:
        return None
    result, moved = move.outputs[0], back.inputs[0]
    if isinstance(move.op, DimShuffle) and isinstance(back.op, DimShuffle):
        pattern = move.op.pattern
        inverse = tuple(pattern.index(axis) if axis in pattern else None for axis in range(move.op.ndim))
        return 0 if back.op.pattern == inverse and back.op.ndim == len(pattern) else None
    if isinstance(move.op, Reshape) and isinstance(back.op, Reshape):
        same = moved.type == result.type and moved.type.shape.count(None) <= 1
        return 0 if same and _is_shape_of(back.inputs[1], s) else None
    if isinstance(move.op, Subtensor) and isinstance(back.op, IncSubtensor):
        fits = back.op == IncSubtensor(move.op.pattern, "add") and back.inputs[2:] == move.inputs[1:]
        return 1 if fits and _is_zero(moved) and back.inputs[1].type == result.type else None
    if isinstance(move.op, Gather) and isinstance(back.op, ScatterAdd):
        fits = back.op.n_index_axes == move.op.n_index_axes and back.inputs[2:] == move.inputs[1:]
        return 1 if fits and _is_zero(moved) and back.inputs[1].type == result.type else None
    return None


def _is_zero(variable: Variable) -> bool:
    return uniform_value(variable) == 0


def _is_shape_of(vector: Variable, s: Variable) -> bool:
    """Whether a vector of sizes is the shape of s."""
    sizes = vector_sizes(vector)
    if sizes is None or len(sizes) != s.ndim:
        return False
    return all(size == s.type.shape[axis] if isinstance(size, int) else _is_size_of(size, s, axis)
               for axis, size in enumerate(sizes))


def _is_size_of(size: Variable, s: Variable, axis: int) -> bool:
    source = shape_source(size)
    return source is not None and source[1] == axis and shape_root(source[0]) is shape_root(s)


def _shaped(value: Variable, node: Apply) -> Variable:
    """A value in the shape of the node that it replaces."""
    result = node.outputs[0]
    if value.type.shape == result.type.shape and (value.type.is_static or value.ndim == 0):
        return value
    return broadcast_to(value, shape_sizes(result))


def _quotient(search: Canceller, s: Variable, node: Apply, depth: int) -> Variable | None:
    u, divisor = node.inputs
    if divisor is s:
        return _shaped(u, node)
    inside = search.cancel(s, u, depth)
    return None if inside is None else inside / divisor


def _product(search: Canceller, s: Variable, node: Apply, depth: int) -> Variable | None:
    a, b = node.inputs
    if b.apply is not None and b.apply.op == Elementwise("reciprocal") and b.apply.inputs[0] is s:
        return _shaped(a, node)
    inside = search.cancel(s, a, depth)
    if inside is not None:
        return apply_op(node.op, inside, b)
    inside = search.cancel(s, b, depth)
    return None if inside is None else apply_op(node.op, a, inside)


def _negation(search: Canceller, s: Variable, node: Apply, depth: int) -> Variable | None:
    inside = search.cancel(s, node.inputs[0], depth)
    return None if inside is None else -inside


def _sum(search: Canceller, s: Variable, node: Apply, depth: int) -> Variable | None:
    a, b = node.inputs
    new_a, new_b = search.cancel(s, a, depth), search.cancel(s, b, depth)
    if new_a is None and new_b is None:
        return None
    return apply_op(node.op, s * a if new_a is None else new_a, s * b if new_b is None else new_b)


def _where(search: Canceller, s: Variable, node: Apply, depth: int) -> Variable | None:
    condition, a, b = node.inputs
    new_a, new_b = search.cancel(s, a, depth), search.cancel(s, b, depth)
    if new_a is None and new_b is None:
        return None
    return e.where(condition, _or_product(new_a, s, a), _or_product(new_b, s, b))


def _or_product(found: Variable | None, s: Variable, branch: Variable) -> Variable:
    if found is not None:
        return found
    return branch if _is_zero(branch) else s * branch


_ELEMENTWISE: dict[str, Callable[[Canceller, Variable, Apply, int], Variable | None]] = {
    "true_div": _quotient, "mul": _product, "masked_mul": _product, "neg": _negation, "add": _sum, "sub": _sum,
    "where": _where}


def cancel(s: Variable, quotient: Variable, context: Context) -> Variable | None:
    """s · quotient without a division by s that `quotient` holds, of the shape of `quotient`; None where it holds none."""
    return Canceller(context).cancel(s, quotient)
