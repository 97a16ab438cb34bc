"""An expression computed for a whole batch of values of one of its leaves at once: every node on the way gets a leading axis.

Each op class has a rule (`batch_rules.py`, `batch_convolution.py`) that says how it is applied to inputs of which some have
the batch's axis in front.  What does not depend on the leaf is left as it is.  An op without a rule is applied to each of the
batch by itself, up to `UNROLLED_AT_MOST` of them.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import GradientError, explain_error
from ..graph import Apply, Op, Variable, toposort
from ..graph.node import make_apply
from ..graph.scope import gradient_scope
from .shape import Size, broadcast_to, dimshuffle, shape_sizes

UNROLLED_AT_MOST = 256
"""How many of a batch an op without a rule is applied to one by one."""


@dataclass(frozen=True, slots=True)
class BatchedNode:
    """A node to be applied to a batch: its new inputs, which of them have the batch's axis in front, the batch's size."""

    node: Apply
    inputs: tuple[Variable, ...]
    batched: tuple[bool, ...]
    size: Size

    @property
    def op(self) -> Any:
        """The node's op."""
        return self.node.op

    def in_front(self, place: int, ndim: int | None = None) -> Variable:
        """Input `place` with an axis for the batch (of size 1 where it is the same for all) before `ndim` others.

        `ndim` is by default the rank of the input in the node; axes of size 1 are put in where it is larger.
        """
        x, own = self.inputs[place], self.node.inputs[place].ndim
        missing = [None] * ((own if ndim is None else ndim) - own)
        if self.batched[place]:
            return dimshuffle(x, [0, *missing, *range(1, x.ndim)])
        return dimshuffle(x, [None, *missing, *range(x.ndim)])

    def spread(self, place: int) -> Variable:
        """Input `place` with the batch's axis in front, repeated where it is the same for all."""
        if self.batched[place]:
            return self.inputs[place]
        return broadcast_to(self.inputs[place], (self.size, *shape_sizes(self.inputs[place])))

    def all_spread(self) -> list[Variable]:
        """All inputs, as `spread` gives them."""
        return [self.spread(place) for place in range(len(self.inputs))]


Rule = Callable[[BatchedNode], Sequence[Variable] | Variable | None]
"""The outputs with the batch's axis in front; None where only the general way is open."""
_RULES: dict[type[Op], Rule] = {}


def batch_rule(*classes: type[Op]) -> Callable[[Rule], Rule]:
    """A decorator that makes a function the rule of some op classes."""

    def register(rule: Rule) -> Rule:
        for each in classes:
            _RULES[each] = rule
        return rule

    return register


def batched(outputs: Sequence[Variable], leaf: Variable, values: Variable, size: Size) -> list[Variable]:
    """Every output for each of `size` values of `leaf`, stacked along a new first axis.

    `values` is the stack of values, [size, …].  An output that does not depend on the leaf is repeated.

    Raises:
        GradientError: an op on the way has no rule, and the batch's size is unknown or above `UNROLLED_AT_MOST`.
    """
    new: dict[Variable, Variable] = {leaf: values}
    with_axis = {leaf}
    for node in toposort(outputs):
        if not any(each in new for each in node.inputs) or node.outputs[0] is leaf:
            continue
        work = BatchedNode(node, tuple(new.get(each, each) for each in node.inputs),
                           tuple(each in with_axis for each in node.inputs), size)
        with gradient_scope(node.outputs[0].scopes):
            results, have_axis = _applied(work)
        new.update(zip(node.outputs, results, strict=True))
        if have_axis:
            with_axis.update(node.outputs)
    return [new[each] if each in with_axis else _repeated(new.get(each, each), size) for each in outputs]


def _applied(work: BatchedNode) -> tuple[Sequence[Variable], bool]:
    """The outputs of a node, and whether they have the batch's axis."""
    from .shape import Shape
    from .shape import shape as shape_of

    if isinstance(work.op, Shape):  # the same for all of a batch
        return [shape_of(work.inputs[0])[1:]], False
    if not any(work.batched):
        return make_apply(work.op, work.inputs, work.node.source).outputs, False
    rule = _RULES.get(type(work.op))
    found = None if rule is None else rule(work)
    if found is None:
        found = _one_by_one(work)
    return [found] if isinstance(found, Variable) else found, True


def _one_by_one(work: BatchedNode) -> list[Variable]:
    """The node applied to each of the batch by itself."""
    from .creation import zeros
    from .joining import stack

    if not isinstance(work.size, int) or work.size > UNROLLED_AT_MOST or (
            work.size == 0 and not all(output.type.is_static for output in work.node.outputs)):
        count = f"{work.size} of them" if isinstance(work.size, int) else "a number that is known only when the function runs"
        raise GradientError(explain_error(
            f"{work.op.name} has no form for many vectors at once, and is applied to at most {UNROLLED_AT_MOST} one by one",
            count, "ask for the rows you need with sc.Lop, or write the expression with other operations",
            work.node.source))
    if work.size == 0:
        return [zeros((0, *output.static_shape), output.dtype) for output in work.node.outputs]
    rows = [make_apply(work.op, [each[number] if has else each for each, has in zip(work.inputs, work.batched, strict=True)],
                       work.node.source).outputs for number in range(work.size)]
    return [stack(list(outputs)) for outputs in zip(*rows, strict=True)]


def _repeated(x: Variable, size: Size) -> Variable:
    return broadcast_to(x, (size, *shape_sizes(x)))
