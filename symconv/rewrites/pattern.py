"""Patterns: expressions over captures, written as algebra, that rules are declared with.

    x, y = Capture("x"), Capture("y")
    @law(log(1 + exp(x)))
    def log_one_plus_exp(match): return softplus(match.x)

Operators and the functions below stand for elementwise nodes; `node(OpClass, inputs…, field=value)` for any other.
Numbers stand for constants with that value everywhere that give the node no other shape than its other inputs have.
Commutative operations match in either order.  A capture used twice must be the same variable.  `.once()` asks that the
value has no other reader, `.called("y")` captures it.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..graph import Apply, Constant, Op, Variable
from ..ops.elementwise import Elementwise
from ..ops.scalar import SCALAR_OPS
from ..ops.shape import BroadcastTo, DimShuffle, Reshape
from .context import Context
from .rule import Kind
from .values import is_unstretched, uniform_value


class Pattern:
    """Base of patterns, with the arithmetic operators."""

    __slots__ = ()

    def __add__(self, other: Any) -> OpPattern:
        return scalar("add", self, other)

    def __radd__(self, other: Any) -> OpPattern:
        return scalar("add", other, self)

    def __sub__(self, other: Any) -> OpPattern:
        return scalar("sub", self, other)

    def __rsub__(self, other: Any) -> OpPattern:
        return scalar("sub", other, self)

    def __mul__(self, other: Any) -> OpPattern:
        return scalar("mul", self, other)

    def __rmul__(self, other: Any) -> OpPattern:
        return scalar("mul", other, self)

    def __truediv__(self, other: Any) -> OpPattern:
        return scalar("true_div", self, other)

    def __rtruediv__(self, other: Any) -> OpPattern:
        return scalar("true_div", other, self)

    def __pow__(self, other: Any) -> OpPattern:
        return scalar("pow", self, other)

    def __neg__(self) -> OpPattern:
        return scalar("neg", self)


@dataclass(frozen=True, slots=True)
class Capture(Pattern):
    """Any variable (that passes `test`), known to the rule by its name."""

    name: str
    test: Callable[[Variable], bool] | None = None


@dataclass(frozen=True, slots=True)
class Literal(Pattern):
    """A constant with this value everywhere."""

    value: float


@dataclass(frozen=True, slots=True)
class OpPattern(Pattern):
    """A node of an op class with given fields and inputs; `is_commutative`: the two inputs may stand in either order."""

    root: type[Op]
    fields: tuple[tuple[str, Any], ...]
    inputs: tuple[Pattern, ...]
    name: str | None = None
    single_reader: bool = False
    scalar: str | None = field(init=False, compare=False)
    is_commutative: bool = field(init=False, compare=False)
    has_literals: bool = field(init=False, compare=False)

    def __post_init__(self) -> None:
        name = dict(self.fields).get("scalar")
        commutes = self.root is Elementwise and name is not None and SCALAR_OPS[name].commutative
        object.__setattr__(self, "scalar", name)
        object.__setattr__(self, "is_commutative", commutes)
        object.__setattr__(self, "has_literals", any(isinstance(each, Literal) for each in self.inputs))

    def called(self, name: str) -> OpPattern:
        """Capture the value of this node too."""
        return replace(self, name=name)

    def once(self) -> OpPattern:
        """Only where exactly one node reads the value."""
        return replace(self, single_reader=True)


def _as_pattern(value: Any) -> Pattern:
    return value if isinstance(value, Pattern) else Literal(value)


def scalar(name: str, *inputs: Any) -> OpPattern:
    """A node of one elementwise operation."""
    return OpPattern(Elementwise, (("scalar", name),), tuple(map(_as_pattern, inputs)))


def node(root: type[Op], *inputs: Any, **fields: Any) -> OpPattern:
    """A node of any op class with given values of some fields."""
    return OpPattern(root, tuple(fields.items()), tuple(map(_as_pattern, inputs)))


def _unary(name: str) -> Callable[[Any], OpPattern]:
    return lambda x: scalar(name, x)


exp, log, log1p, expm1, sigmoid, softplus, sqrt, square, absolute, reciprocal, relu = map(_unary, (
    "exp", "log", "log1p", "expm1", "sigmoid", "softplus", "sqrt", "square", "abs", "reciprocal", "relu"))


class Match:
    """What a pattern found: captures as attributes, the root `node`, its value `root`, and the sweep's `context`."""

    __slots__ = ("_bound", "context", "node", "root")

    def __init__(self, root: Variable, bound: dict[str, Variable], context: Context) -> None:
        assert root.apply is not None
        self.root, self.node, self.context = root, root.apply, context
        self._bound = bound

    def __getattr__(self, name: str) -> Variable:
        try:
            return self._bound[name]
        except KeyError:
            raise AttributeError(name) from None


def match_pattern(pattern: OpPattern, variable: Variable, context: Context) -> Iterator[Match]:
    """Every way in which the pattern fits the variable."""
    for bound in _solutions(((pattern, variable),), {}, context):
        yield Match(variable, bound, context)


Goals = tuple[tuple[Pattern, Variable], ...]


def _solutions(goals: Goals, bound: dict[str, Variable], context: Context) -> Iterator[dict[str, Variable]]:
    if not goals:
        yield bound
        return
    (pattern, variable), rest = goals[0], goals[1:]
    if isinstance(pattern, Literal):
        yield from _solutions(rest, bound, context)  # its value was looked at in _may_fit
    elif isinstance(pattern, Capture):
        known = bound.get(pattern.name)
        if known is None or known is variable:
            yield from _solutions(rest, {**bound, pattern.name: variable}, context)
    elif isinstance(pattern, OpPattern) and _fits(pattern, variable.apply):
        if pattern.single_reader and not context.has_one_reader(variable):
            return
        if pattern.name is not None:
            bound = {**bound, pattern.name: variable}
        for inputs in _orders(pattern, variable.apply):
            if _may_fit(pattern, inputs) and _literals_shape_nothing(pattern, inputs, variable.apply):
                yield from _solutions((*zip(pattern.inputs, inputs, strict=True), *rest), bound, context)


_MAYBE_UNIFORM = (Constant, BroadcastTo, DimShuffle, Reshape)


def fits_kinds(pattern: OpPattern, kind: Kind, kinds: Sequence[Kind]) -> bool:
    """Whether a node of this kind whose inputs are of these kinds can fit at all: what can be told before looking at the node."""
    if not _fits_kind(pattern, kind) or len(kinds) != len(pattern.inputs):
        return False
    orders = (kinds, kinds[::-1]) if pattern.is_commutative else (kinds,)
    return any(all(map(_fits_kind, pattern.inputs, order)) for order in orders)


def _fits_kind(pattern: Pattern, kind: Kind) -> bool:
    found, scalar = kind
    if isinstance(pattern, Literal):
        return issubclass(found, _MAYBE_UNIFORM) or (issubclass(found, Elementwise) and scalar == "cast")
    if isinstance(pattern, OpPattern):
        return issubclass(found, pattern.root) and pattern.scalar in (None, scalar)
    return True


def _fits(pattern: OpPattern, node: Apply | None) -> bool:
    if node is None or not isinstance(node.op, pattern.root) or len(node.inputs) != len(pattern.inputs):
        return False
    return all(getattr(node.op, name) == value for name, value in pattern.fields)


def _may_fit(pattern: OpPattern, inputs: tuple[Variable, ...]) -> bool:
    """A quick look at the inputs' own nodes, before bindings are made."""
    for each, variable in zip(pattern.inputs, inputs, strict=True):
        if isinstance(each, OpPattern):
            if not _fits(each, variable.apply):
                return False
        elif isinstance(each, Literal):
            if uniform_value(variable) != each.value:
                return False
        elif isinstance(each, Capture) and each.test is not None and not each.test(variable):
            return False
    return True


def _literals_shape_nothing(pattern: OpPattern, inputs: tuple[Variable, ...], node: Apply | None) -> bool:
    """Whether the inputs that are no literals have the node's shape by themselves: rules drop literals."""
    assert node is not None
    if not pattern.has_literals:
        return True
    return any(is_unstretched(variable, node) for each, variable in zip(pattern.inputs, inputs, strict=True)
               if not isinstance(each, Literal))


def _orders(pattern: OpPattern, node: Apply | None) -> Iterator[tuple[Variable, ...]]:
    assert node is not None
    yield node.inputs
    if pattern.is_commutative and node.inputs[0] is not node.inputs[1]:
        yield node.inputs[::-1]
