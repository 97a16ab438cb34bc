"""THE order of all rewriting.

Symbolic phases hold for any shape; bound phases run when every shape is known, and may ask the target.  A rule or phase can
be left out, or chosen alone, by its name.
"""
from __future__ import annotations

from collections.abc import Iterable

from ..errors import ArgumentError, explain_error
from ..graph import FunctionGraph
from ..target import Target
from . import (
    assertions,
    bound,
    convolution_fusion,
    convolution_scale,
    convolution_spec,
    folding,
    identities,
    moments,
    movement,
    pooling,
    reductions,
    stable_scalars,
    stable_softmax,
)
from .conv_chains import join_chains
from .elementwise_fusion import fuse_elementwise
from .engine import run_phase
from .fuel import FUEL
from .layout import choose_layouts
from .log import Log
from .pooled_gradients import skip_zeros_of_pooling
from .rule import Phase

_SMALLER = (*movement.RULES, *identities.RULES, *assertions.RULES)

SYMBOLIC: tuple[Phase, ...] = (
    Phase("canonicalize", (folding.fold_integer_constants, *_SMALLER, *reductions.RULES)),
    Phase("stabilize", (*stable_softmax.RULES, *stable_scalars.RULES, *_SMALLER)),
    Phase("conv_canonical", convolution_spec.RULES),
    Phase("specialize", (*folding.RULES, *_SMALLER)),
)
BOUND: tuple[Phase, ...] = (
    Phase("bound_stabilize", stable_softmax.BOUND_RULES),
    Phase("bound_canonicalize", (*folding.RULES, *bound.RULES, *_SMALLER, *reductions.BOUND_RULES, *pooling.RULES, *moments.RULES)),
    Phase("pooled_gradients", whole=(skip_zeros_of_pooling,)),
    Phase("conv_scale", (*convolution_spec.RULES, *convolution_scale.RULES, *movement.RULES, *folding.RULES)),
    Phase("conv_fuse", (*convolution_fusion.RULES, *movement.RULES, *folding.RULES)),
    Phase("layout", movement.RULES, whole=(choose_layouts, join_chains)),
    Phase("elemwise_fuse", whole=(fuse_elementwise,)),
)
PIPELINE = SYMBOLIC + BOUND
FAST_COMPILE = ("canonicalize", "stabilize", "bound_stabilize", "bound_canonicalize")
"""What the mode `fast_compile` includes: what makes the graph smaller or more exact, and no fusing."""


def rule_names() -> tuple[str, ...]:
    """Every name that `include` and `exclude` take: phases and rules."""
    return tuple(dict.fromkeys(name for phase in PIPELINE for name in (phase.name, *phase.names)))


def rewrite_symbolic(graph: FunctionGraph, target: Target | None = None, include: Iterable[str] | None = None,
                     exclude: Iterable[str] = (), log: Log | None = None) -> tuple[FunctionGraph, Log]:
    """Run the symbolic phases; the rewritten graph, and the log of what was done and what was not.

    `include` names the phases and rules to run (None: all, `()`: none), `exclude` those to leave out.  With `log` the record
    of an earlier call is continued (its fuel too).
    """
    return _run(SYMBOLIC, graph, target, include, exclude, log)


def rewrite_bound(graph: FunctionGraph, target: Target | None = None, include: Iterable[str] | None = None,
                  exclude: Iterable[str] = (), log: Log | None = None) -> tuple[FunctionGraph, Log]:
    """Run the bound phases over a graph whose shapes are all static; arguments as for `rewrite_symbolic`."""
    return _run(BOUND, graph, target, include, exclude, log)


def _run(phases: tuple[Phase, ...], graph: FunctionGraph, target: Target | None, include: Iterable[str] | None,
         exclude: Iterable[str], log: Log | None) -> tuple[FunctionGraph, Log]:
    log = Log(FUEL.left) if log is None else log
    before = len(log.applications)
    for phase in selected(phases, include, exclude):
        graph = run_phase(graph, phase, target or Target(), log)
    FUEL.spend(log.applications[before:])
    return graph, log


def selected(phases: Iterable[Phase], include: Iterable[str] | None = None, exclude: Iterable[str] = ()) -> list[Phase]:
    """The phases with what is included and not excluded, those left empty out."""
    wanted = None if include is None else _checked(include)
    unwanted = _checked(exclude)
    chosen = [phase.selected(wanted, unwanted) for phase in phases]
    return [phase for phase in chosen if phase.rules or phase.whole]


def _checked(names: Iterable[str]) -> frozenset[str]:
    wanted = frozenset((names,) if isinstance(names, str) else names)
    unknown = wanted.difference(rule_names())
    if unknown:
        raise ArgumentError(explain_error("there is no rewrite of this name", ", ".join(sorted(unknown)),
                                          f"use some of: {', '.join(rule_names())}"))
    return wanted
