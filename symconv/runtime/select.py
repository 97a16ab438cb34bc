"""Select: an implementation for one op on operands of known shape, with the reasons of those that refused."""
from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from ..codegen.implementation import Implementation
from ..codegen.kernel import Kernel, Operand, Problem
from ..codegen.lists import implementations
from ..config import config
from ..errors import ArgumentError, BackendError, explain_error
from ..graph import Op
from ..ops.convolution import Conv
from ..target import Target

NO_KERNEL = "no generated kernel for this operation"
NO_CANDIDATE = "generated kernels"


@dataclass(frozen=True, slots=True)
class Candidate:
    """One implementation that was asked: its estimate in seconds, or why it refused."""

    name: str
    estimate: float | None = None
    refusal: str | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    """What was chosen: `implementation` is None for the NumPy reference; `copied` are inputs made contiguous first."""

    implementation: Implementation | None
    problem: Problem
    copied: tuple[int, ...]
    candidates: tuple[Candidate, ...]

    @property
    def name(self) -> str:
        """Name of the implementation."""
        return "reference" if self.implementation is None else self.implementation.name


def choose(op: Op, inputs: tuple[Operand, ...], outputs: tuple[Operand, ...], target: Target,
           reference: bool = False) -> Choice:
    """The accepted candidate with the smallest estimate; the reference where none accepts (or where it is asked for)."""
    plain = _with_copies(None, Problem(op, inputs, outputs))
    if reference or not target.has_compiler:
        why = "the mode asks for the NumPy references" if reference else "no C compiler was found"
        return Choice(None, *plain, (Candidate(NO_CANDIDATE, refusal=why),))
    candidates: list[Candidate] = []
    best: tuple[float, Implementation, Problem, tuple[int, ...]] | None = None
    for implementation in _asked(op):
        problem, copied = _with_copies(implementation, Problem(op, inputs, outputs))
        refusal = implementation.refuse(problem, target)
        if refusal is not None:
            candidates.append(Candidate(implementation.name, refusal=refusal))
            continue
        estimate = implementation.estimate(problem, target)
        candidates.append(Candidate(implementation.name, estimate))
        if best is None or estimate < best[0]:
            best = (estimate, implementation, problem, copied)
    if best is None:
        _check_forced(op, candidates)
        return Choice(None, *plain, tuple(candidates) or (Candidate(NO_CANDIDATE, refusal=NO_KERNEL),))
    return Choice(best[1], best[2], best[3], tuple(candidates))


def _asked(op: Op) -> tuple[Implementation, ...]:
    """The implementations of an op; only the forced one where `config.conv.implementation` names one that is meant for it.

    (No implementation makes both images and filter gradients: forcing one for either leaves the choice for the other.)
    """
    every = implementations(type(op))
    serving = tuple(each for each in every if each.serves(op))
    forced = config.conv.implementation
    if not forced or not isinstance(op, Conv):
        return serving
    if forced == "reference":
        return ()
    if not any(each.name == forced for each in every):
        names = ", ".join([each.name for each in every] + ["reference"])
        raise ArgumentError(explain_error("config.conv.implementation names no convolution implementation", repr(forced),
                                          f"use one of {names}"))
    return tuple(each for each in serving if each.name == forced) or serving


def _check_forced(op: Op, candidates: list[Candidate]) -> None:
    if isinstance(op, Conv) and config.conv.implementation not in ("", "reference") and candidates:
        raise BackendError(explain_error(
            f"the forced implementation {config.conv.implementation!r} refuses this convolution",
            "; ".join(str(each.refusal) for each in candidates)))


def _with_copies(implementation: Implementation | None, problem: Problem) -> tuple[Problem, tuple[int, ...]]:
    """The problem as the implementation sees it: inputs whose strides it does not take are contiguous copies."""
    copied = tuple(position for position, operand in enumerate(problem.inputs)
                   if not operand.is_contiguous
                   and not (implementation is None or implementation.takes_strides(problem, position)))
    if not copied:
        return problem, ()
    inputs = tuple(Operand.contiguous(operand.dtype, operand.shape) if position in copied else operand
                   for position, operand in enumerate(problem.inputs))
    return Problem(problem.op, inputs, problem.outputs), copied


@lru_cache(maxsize=4096)
def build_kernel(implementation: Implementation, problem: Problem, target: Target) -> Kernel:
    """The implementation's kernel; the same problem is rendered once for a process."""
    return implementation.build(problem, target)
