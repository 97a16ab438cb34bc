"""What a rewrite is: rules, phases, and the answer of a rule that recognised its pattern and still declined.

A rule is a pure function of one node.  It answers a variable (a tuple of variables for a node with several outputs) that
has the same value and type, `None` where its pattern does not apply, or `Skip(reason)` where the pattern is there and
the law holds but is not worth or not allowed here; `explain()` shows those reasons.

    @rule(Elementwise, scalar="log")
    def log_of_exp(node, context): ...

    @law(log(exp(x)))            # a pattern, see pattern.py
    def log_of_exp(match): ...

A phase is a named tuple of rules, run to a fixpoint.  Some laws look at the whole graph (fusing elementwise nodes into
kernels): a `whole` function maps variables of the graph to their replacements in one go.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from ..graph import Apply, Constant, Op, Variable

if TYPE_CHECKING:
    from .context import Context
    from .pattern import Match, OpPattern


_MAX_KINDS = 4  # rules of nodes with more inputs are not sorted by what these are


@dataclass(frozen=True, slots=True)
class Skip:
    """The law was recognised and not applied, for this reason; `node` is where, if not the node the rule was asked about."""

    reason: str
    node: Apply | None = None


Replacement = Variable | tuple[Variable, ...]
Answer = Replacement | Skip | None
Rewriter = Callable[..., Answer]


Kind = tuple[type, str | None]
"""What made a variable, as far as rules are sorted by it: an op class and the scalar operation's name; `Constant` or `Variable`."""


def op_kind(op: Op) -> Kind:
    """The kind of an op's results."""
    return type(op), getattr(op, "scalar", None)


def kind_of(variable: Variable) -> Kind:
    """What made a variable."""
    node = variable.apply
    return op_kind(node.op) if node is not None else (Constant if isinstance(variable, Constant) else Variable, None)


KindTest = Callable[[Kind, Sequence[Kind]], bool]


@dataclass(frozen=True, slots=True)
class Rule:
    """One law: its name, the op class (and fields) of the node it starts from, and the function.

    `may_fit(kind, kinds)` rejects nodes early: by what made the node's inputs no match can come.
    """

    name: str
    root: type[Op]
    fields: tuple[tuple[str, Any], ...]
    function: Rewriter
    may_fit: KindTest | None = None

    @property
    def is_told_by_kind(self) -> bool:
        """Whether the op's class and scalar tell all that `starts_at` asks."""
        return all(name == "scalar" for name, _ in self.fields)

    def starts_at(self, op: Op) -> bool:
        """Whether nodes of this op are offered to the rule; a field may be given as a set of allowed values."""
        return isinstance(op, self.root) and all(_allowed(getattr(op, name), value) for name, value in self.fields)

    def __call__(self, node: Apply, context: Context) -> Answer:
        return self.function(node, context)


def _allowed(found: Any, wanted: Any) -> bool:
    return found in wanted if isinstance(wanted, frozenset) else bool(found == wanted)


def rule(root: type[Op], reads: type | None = None, **fields: Any) -> Callable[[Rewriter], Rule]:
    """Declare `function(node, context)` as the rule for nodes of one op class, perhaps with fixed fields.

    A field given as a set means one of its members: `@rule(Elementwise, scalar={"add", "sub"})`.  `reads` is an op class (or
    `Constant`): the rule wants only nodes with an input of that kind, and those without inputs.
    """
    may_fit = None if reads is None else partial(_reads_one, reads)
    wanted = tuple((name, frozenset(value) if isinstance(value, set) else value) for name, value in fields.items())

    def declare(function: Rewriter) -> Rule:
        return Rule(law_name(function), root, wanted, function, may_fit)

    return declare


def _reads_one(wanted: type, kind: Kind, kinds: Sequence[Kind]) -> bool:
    return not kinds or any(issubclass(found, wanted) for found, _ in kinds)


def law(*patterns: OpPattern) -> Callable[[Callable[[Match], Answer]], Rule]:
    """Declare `function(match)` as the rule for nodes that fit one of the patterns (all with roots of one op class)."""
    from .pattern import fits_kinds, match_pattern

    root, fields = patterns[0].root, _common_fields(patterns)

    def may_fit(kind: Kind, kinds: Sequence[Kind]) -> bool:
        return any(fits_kinds(pattern, kind, kinds) for pattern in patterns)

    def declare(function: Callable[[Match], Answer]) -> Rule:
        def try_patterns(node: Apply, context: Context) -> Answer:
            declined: Skip | None = None
            for pattern in patterns:
                for match in match_pattern(pattern, node.outputs[0], context):
                    answer = function(match)
                    if isinstance(answer, Skip):
                        declined = declined or answer
                    elif answer is not None:
                        return answer
            return declined

        return Rule(law_name(function), root, fields, try_patterns, may_fit)

    return declare


def _common_fields(patterns: tuple[OpPattern, ...]) -> tuple[tuple[str, Any], ...]:
    """Fields that the roots of all patterns fix, as sets of values, so that the engine can index the rule."""
    names = set.intersection(*({name for name, _ in pattern.fields} for pattern in patterns))
    return tuple((name, frozenset(dict(pattern.fields)[name] for pattern in patterns)) for name in sorted(names))


def law_name(function: Callable[..., Any]) -> str:
    """The name that a rule goes by: its function's."""
    return function.__name__


Whole = Callable[["Context"], Mapping[Variable, Variable]]


@dataclass(frozen=True, slots=True)
class Phase:
    """A named tuple of rules, run to a fixpoint; then `whole`, laws over the whole graph, each applied once."""

    name: str
    rules: tuple[Rule, ...] = ()
    whole: tuple[Whole, ...] = ()
    _candidates: dict[tuple[Kind, tuple[Kind, ...] | None], tuple[tuple[Rule, bool], ...]] = field(
        default_factory=dict, repr=False, compare=False)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of everything in it."""
        return tuple(rule.name for rule in self.rules) + tuple(law_name(function) for function in self.whole)

    def selected(self, include: frozenset[str] | None, exclude: frozenset[str]) -> Phase:
        """The phase with only what is included (by its own name or the phase's; None: all) and not excluded."""
        def wanted(name: str) -> bool:
            inside = include is None or name in include or self.name in include
            return inside and name not in exclude and self.name not in exclude

        if all(map(wanted, self.names)):
            return self
        return Phase(self.name, tuple(rule for rule in self.rules if wanted(rule.name)),
                     tuple(function for function in self.whole if wanted(law_name(function))))

    def candidates(self, node: Apply) -> tuple[tuple[Rule, bool], ...]:
        """The rules to try at a node, in the phase's order, each with whether its other fields are yet to be looked at.

        They depend only on the kinds of the node and of its inputs, of which graphs have few combinations.
        """
        inputs = node.inputs
        kinds = tuple([kind_of(each) for each in inputs]) if len(inputs) <= _MAX_KINDS else None
        key = (op_kind(node.op), kinds)
        found = self._candidates.get(key)
        if found is None:
            found = tuple((rule, not rule.is_told_by_kind) for rule in self.rules if _may_start_at(rule, *key))
            self._candidates[key] = found
        return found


def _may_start_at(rule: Rule, kind: Kind, kinds: tuple[Kind, ...] | None) -> bool:
    """By the kinds of the node and its inputs (None: not looked at); all else is looked at when the rule is tried."""
    op_class, scalar = kind
    if not issubclass(op_class, rule.root):
        return False
    wanted = dict(rule.fields).get("scalar")
    if wanted is not None and not (scalar in wanted if isinstance(wanted, frozenset) else scalar == wanted):
        return False
    return kinds is None or rule.may_fit is None or rule.may_fit(kind, kinds)
