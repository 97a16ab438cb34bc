"""Runs a phase over a graph to its fixpoint.

Each sweep walks the nodes from inputs to outputs, rebuilds those whose inputs changed, and offers each to the rules that
start at its op; a hit is tried again at once, so a chain settles in one sweep.  Nodes that no rule wanted are not asked
again in this phase, unless a rule asked who reads them: so the time grows with the graph and not with its square.
Every hit is checked: the new variable has the old dtype and rank, and no size contradicts.  New nodes carry the user's
lines of the nodes they replace; names that the user gave stay on the replacing variable.
"""
from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Iterator, Mapping

from ..config import config
from ..errors import InternalError, UserError
from ..graph import Apply, FunctionGraph, Variable
from ..graph.provenance import Sources, merge_sources
from ..graph.verify import verify
from ..target import Target
from .context import Context, Vocabulary
from .log import Application, Log, PhaseReport, expression_text
from .rule import Phase, Replacement, Rule, Skip, Whole, law_name

MAX_SWEEPS = 100
_MAX_HITS_AT_ONE_NODE = 30
_MAX_SOURCE_NODES = 16
logger = logging.getLogger("symconv")


def run_phase(graph: FunctionGraph, phase: Phase, target: Target, log: Log) -> FunctionGraph:
    """The graph after the phase: its rules to a fixpoint, then its laws over the whole graph once each."""
    started, before = time.perf_counter(), len(graph.nodes)
    runner = _PhaseRunner(graph, phase, target, log)
    graph, sweeps = runner.to_fixpoint(graph)
    log.keep_declined(phase.name, frozenset(graph.nodes))
    for whole in phase.whole:
        graph = runner.apply_whole(graph, whole)
    log.phases.append(PhaseReport(phase.name, sweeps, before, len(graph.nodes), time.perf_counter() - started))
    if config.debug:
        logger.info("%s", log.phases[-1])
    return graph


class _PhaseRunner:
    """The state of one phase: what is interned, which nodes have settled."""

    def __init__(self, graph: FunctionGraph, phase: Phase, target: Target, log: Log) -> None:
        self.phase, self.target, self.log = phase, target, log
        self.vocabulary = Vocabulary(graph)
        self.settled: set[Apply] = set()

    def to_fixpoint(self, graph: FunctionGraph) -> tuple[FunctionGraph, int]:
        """Sweep until nothing changes; an InternalError after MAX_SWEEPS names the rules that still fire."""
        if not self.phase.rules:
            return graph, 0
        for sweep in range(1, MAX_SWEEPS + 1):
            hits_before = len(self.log.applications)
            graph = _Sweep(self, graph).run()
            if config.verify:
                verify(graph, f"{self.phase.name}, sweep {sweep}")
            if len(self.log.applications) == hits_before:
                return graph, sweep
        still = Counter(each.rule for each in self.log.applications[hits_before:])
        raise InternalError(f"the phase {self.phase.name} does not come to rest after {MAX_SWEEPS} sweeps; these rules "
                            f"still fire: {', '.join(f'{name} ({count})' for name, count in still.items())}")

    def apply_whole(self, graph: FunctionGraph, whole: Whole) -> FunctionGraph:
        """One law over the whole graph; its replacements are put in place in one rebuild."""
        name = law_name(whole)
        context = Context(graph, self.target, self.vocabulary)
        replacements = whole(context) if self.log.has_fuel else {}
        for node, reason in context.declined:
            self.log.decline(self.phase.name, name, node, reason)
        graph = _Sweep(self, graph).replace(name, replacements)
        if config.verify:
            verify(graph, f"{self.phase.name}, {name}")
        return graph


class _Sweep:
    """One walk over the graph."""

    def __init__(self, runner: _PhaseRunner, graph: FunctionGraph) -> None:
        self.runner, self.graph = runner, graph
        self.context = Context(graph, runner.target, runner.vocabulary)
        self.memo: dict[Variable, Variable] = {}

    def run(self) -> FunctionGraph:
        """The graph after one walk."""
        settled, memo = self.runner.settled, self.memo
        for node in self.graph.nodes:
            if node not in settled or not memo.keys().isdisjoint(node.inputs):
                self._record(node.outputs, self._settle(node))
        return self._result()

    def replace(self, name: str, replacements: Mapping[Variable, Variable]) -> FunctionGraph:
        """The graph with given replacements (variables of the graph → expressions over its variables) put in place."""
        if not replacements:
            return self.graph
        for old, new in replacements.items():
            self._check_type(name, old, new)
        done = self.runner.vocabulary.substitute(self.graph.results, replacements)
        if self.runner.log.images is not None:
            self.runner.log.images.append(done)
        for old in replacements:
            if old in done:
                _keep_sources(old, done[old])
                self._note(name, (old,), (done[old],))
        return self.graph.with_results([done[variable] for variable in self.graph.results])

    def _result(self) -> FunctionGraph:
        if not self.memo:
            return self.graph
        if self.runner.log.images is not None:
            self.runner.log.images.append(self.memo)
        return self.graph.with_results([self.memo.get(variable, variable) for variable in self.graph.results])

    def _record(self, old: tuple[Variable, ...], new: tuple[Variable, ...]) -> None:
        for before, after in zip(old, new, strict=True):
            if before is not after:
                self.memo[before] = after
                _keep_name(before, after)

    def _with_new_inputs(self, node: Apply) -> Apply:
        memo = self.memo
        if memo.keys().isdisjoint(node.inputs):
            return node
        made = self.runner.vocabulary.interner.apply(node.op, [memo.get(each, each) for each in node.inputs], node.source, node)
        self.runner.vocabulary.admit((made,))
        return made

    def _settle(self, node: Apply) -> tuple[Variable, ...]:
        """Apply rules at a node, and at what they put in its place, until none wants it."""
        old = node.outputs
        node = self._with_new_inputs(node)
        outputs = node.outputs
        for _ in range(_MAX_HITS_AT_ONE_NODE):
            if outputs is not old:
                self.context.note_replaced(old, outputs)
            found = None if node in self.runner.settled else self._first_hit(node)
            if found is None:
                return outputs
            outputs = found
            next_node = outputs[0].apply
            if next_node is None or next_node.outputs != outputs:
                return outputs
            node = next_node
        return outputs

    def _first_hit(self, node: Apply) -> tuple[Variable, ...] | None:
        self.context.asked_readers = False
        for rule, answer in self._answers(node):
            if isinstance(answer, Skip):
                self.runner.log.decline(self.runner.phase.name, rule.name, answer.node or node, answer.reason)
                continue
            new = self._accepted(rule, node, answer)
            if new is not None:
                return new
        if not self.context.asked_readers:
            self.runner.settled.add(node)
        return None

    def _answers(self, node: Apply) -> Iterator[tuple[Rule, Replacement | Skip]]:
        for rule, has_fields in self.runner.phase.candidates(node):
            if (not has_fields or rule.starts_at(node.op)) and self.runner.log.has_fuel:
                answer = self._asked(rule, node)
                if answer is not None:
                    yield rule, answer

    def _asked(self, rule: Rule, node: Apply) -> Replacement | Skip | None:
        try:
            return rule(node, self.context)
        except UserError as error:
            raise InternalError(f"the rule {rule.name} fails at {expression_text(node.outputs[0])}: {error}") from error

    def _accepted(self, rule: Rule, node: Apply, answer: Replacement) -> tuple[Variable, ...] | None:
        """The interned replacement, noted in the log; None where it is the node itself or says less about the shape."""
        proposed = answer if isinstance(answer, tuple) else (answer,)
        if len(proposed) != len(node.outputs):
            raise InternalError(f"the rule {rule.name} gives {len(proposed)} variables for {len(node.outputs)}: {node}")
        for old, new in zip(node.outputs, proposed, strict=True):
            self._check_type(rule.name, old, new)
            if new.type != old.type and new.type.meet(old.type) != new.type:
                return None
        sources = replaced_sources(node, proposed)
        made = tuple(self.runner.vocabulary.intern(proposed, sources))
        if made == node.outputs:
            return None
        self._note(rule.name, node.outputs, made)
        return made

    def _note(self, name: str, old: tuple[Variable, ...], new: tuple[Variable, ...]) -> None:
        for before, after in zip(old, new, strict=True):
            _keep_name(before, after)
        sources = new[0].source or old[0].source
        self.runner.log.applications.append(Application(self.runner.phase.name, name, old, new, sources))
        if config.debug >= 2:
            logger.debug("%s: %s", self.runner.phase.name, self.runner.log.applications[-1])

    def _check_type(self, name: str, old: Variable, new: Variable) -> None:
        if not old.type.accepts(new.type):
            raise InternalError(f"{name} would change a type in the phase {self.runner.phase.name}: {old.type} of "
                                f"{expression_text(old)} to {new.type} of {expression_text(new)}")


def _keep_sources(old: Variable, new: Variable) -> None:
    """What stands for a node has its user's lines too."""
    if new.apply is not None:
        new.apply.source = merge_sources(new.apply.source, old.source)


def _keep_name(old: Variable, new: Variable) -> None:
    """A user's name goes over to what replaces the variable, but never onto a leaf."""
    if old.name and new.apply is not None and not new.name:
        new.name = old.name


def replaced_sources(node: Apply, proposed: tuple[Variable, ...]) -> Sources:
    """The user's lines of a node and of the nodes under it that the replacement no longer reads."""
    kept = {each for variable in proposed for each in _near(variable, node)}
    groups, stack, seen = [], [node], {node}
    while stack and len(seen) <= _MAX_SOURCE_NODES:
        current = stack.pop(0)
        groups.append(current.source)
        below = [each.apply for each in current.inputs if each not in kept and each.apply is not None]
        stack.extend(each for each in below if each not in seen)
        seen.update(below)
    return merge_sources(*groups)


def _near(variable: Variable, node: Apply) -> Iterator[Variable]:
    """The variables of the first few levels of a replacement: new ones, and those of the graph that it reads."""
    level, seen = [variable], {variable}
    for _ in range(6):
        yield from level
        level = [each for known in level if known.apply is not None and known.apply is not node
                 for each in known.apply.inputs if each not in seen]
        seen.update(level)
        if len(seen) > 4 * _MAX_SOURCE_NODES:
            return
