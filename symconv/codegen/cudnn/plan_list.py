"""The plans of one problem on one GPU, numbered, best first: each is made when it is first asked for, and kept on disk.

Plans come from a `PlanMaker`: the library (`LibraryPlans`), or a stand-in that a test registers for the emulator.  A function that
was loaded from a file brings plans of its own (`given_plans`), which go first.
"""
from __future__ import annotations

import logging
import threading
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from itertools import islice
from typing import Protocol

from ...config import VERSION, config
from ...errors import BackendError, explain_error
from ...ops.conv_problem import ConvProblem
from ..cache import current_cache
from ..notes import MEASURED, read_note, write_note
from . import library
from .devices import DeviceProperties
from .fusion import Fusion, parse_fusion
from .plans import CudnnPlan, PlanRefusedError, plans
from .support import Requirements

log = logging.getLogger("symconv.codegen")
MOST_PLANS = 8  # of one problem that are tried: those further down the heuristics' list are the slowest


@dataclass(frozen=True, slots=True)
class Asked:
    """What plans are asked for: a problem on a GPU, with a chain fused, within requirements."""

    problem: ConvProblem
    gpu: DeviceProperties
    requirements: Requirements
    fusion: Fusion

    @property
    def key(self) -> str:
        """The same on any GPU, as text: how a saved function names its plans."""
        wanted = self.requirements
        return (f"{self.problem} operands {','.join(self.fusion.dtypes) or 'none'} tf32 {wanted.tf32} deterministic "
                f"{wanted.deterministic} workspace {wanted.workspace_bytes}")


class PlanMaker(Hashable, Protocol):
    """What makes plans."""

    @property
    def version(self) -> str:
        """Whose plans these are: a plan that is kept holds for this version."""

    def why_not(self, runs_here: bool) -> str | None:
        """None where plans can be made (and run on this machine, if `runs_here`), else what is missing."""

    def plans(self, asked: Asked) -> Iterator[CudnnPlan]:
        """The plans, best first. PlanRefusedError where there is none."""


class LibraryPlans:
    """The installed cuDNN."""

    @property
    def version(self) -> str:
        """Of cuDNN and of its frontend."""
        frontend = library.load_frontend()
        return f"{frontend.backend_version()} {frontend.__version__}"

    def why_not(self, runs_here: bool) -> str | None:
        """What `library` finds missing; looked for once in a process."""
        return _library_state(runs_here)

    def plans(self, asked: Asked) -> Iterator[CudnnPlan]:
        """The library's."""
        return plans(asked.problem, asked.gpu, asked.requirements, asked.fusion)


@lru_cache(maxsize=2)
def _library_state(runs_here: bool) -> str | None:
    return library.available() if runs_here else library.why_not_deviceless()


class PlanList:
    """The plans of one question. `order` has the numbers of those that were timed, fastest first; of other plans there is none."""

    def __init__(self, maker: PlanMaker, asked: Asked, measures: bool = False) -> None:
        self._maker, self._asked = maker, asked
        self._found: list[CudnnPlan] = []
        self._source: Iterator[CudnnPlan] | None = None
        self._lock = threading.RLock()
        self.order: tuple[int, ...] = self._noted() if measures else ()

    def get(self, number: int) -> CudnnPlan:
        """The `number`-th plan.

        Raises:
            PlanRefusedError: there are not so many, or no more are tried.
        """
        if number >= MOST_PLANS:
            raise PlanRefusedError(explain_error("no further plan of cuDNN is tried", f"{MOST_PLANS} were"))
        with self._lock:
            while len(self._found) <= number:
                kept = self._kept(len(self._found)) if self._source is None else None
                self._found.append(kept or self._made())
            return self._found[number]

    def by_number(self) -> Iterator[CudnnPlan]:
        """The plans as the heuristics give them; ends where there are no more.

        Raises:
            PlanRefusedError: there is none.
        """
        for number in range(MOST_PLANS):
            try:
                plan = self.get(number)
            except PlanRefusedError:
                if number == 0:
                    raise
                return
            yield plan

    def in_order(self) -> Iterator[CudnnPlan]:
        """The plans in the order in which they are to be tried: where they were timed, those that ran."""
        return (self.get(number) for number in self.order) if self.order else self.by_number()

    def rank(self, order: Sequence[int]) -> None:
        """Numbers of plans, fastest first, as measured; kept on disk."""
        self.order = tuple(order)
        try:
            write_note(MEASURED, self._facts(), list(order))
        except OSError as error:
            log.warning("the plans of %s are timed again by the next process: they cannot be kept (%s)", self._asked.key, error)

    def _noted(self) -> tuple[int, ...]:
        noted = read_note(MEASURED, self._facts())
        if not isinstance(noted, list) or not all(type(each) is int and 0 <= each < MOST_PLANS for each in noted):
            return ()
        return tuple(noted)

    def _facts(self) -> dict[str, str]:
        return {"plans of": self._asked.key, "gpu": self._asked.gpu.text, "cudnn": self._maker.version, "symconv": VERSION}

    def after(self, plan: CudnnPlan) -> CudnnPlan | None:
        """The plan to be tried after another; the first after one that is not of this list."""
        is_past = plan not in self._found
        for each in self.in_order():
            if is_past and each != plan:
                return each
            is_past = is_past or each == plan
        return None

    def _made(self) -> CudnnPlan:
        """The next plan from the maker, put into the kernel cache."""
        number = len(self._found)
        if self._source is None:
            self._source = islice(self._maker.plans(self._asked), number, None)
        plan = next(self._source, None)
        if plan is None:
            raise PlanRefusedError(explain_error("cuDNN has no further plan", f"{number} were tried"))
        current_cache().store_made(self._name(number), plan.to_bytes(), ".plan")
        return plan

    def _kept(self, number: int) -> CudnnPlan | None:
        found = current_cache().find(self._name(number), ".plan")
        return None if found is None else CudnnPlan.from_bytes(found.read_bytes())

    def _name(self, number: int) -> str:
        parts = ("cudnn", self._asked.key, self._asked.gpu.text, self._maker.version, str(number))
        return sha256("\n".join(parts).encode()).hexdigest()


@lru_cache(maxsize=4096)
def _plan_list(maker: PlanMaker, asked: Asked, cache_dir: str, measures: bool) -> PlanList:
    return PlanList(maker, asked, measures)


def plan_list(maker: PlanMaker, asked: Asked) -> PlanList:
    """The plans of a question; the same list for the same question."""
    return _plan_list(maker, asked, config.cache_dir, config.selection == "measure")


def first_plan(problem: ConvProblem, device: DeviceProperties, requirements: Requirements | None = None) -> CudnnPlan:
    """The library's best plan for a problem with the chain of its text, from the kernel cache where it is there."""
    chain = parse_fusion(problem.epilogue, problem.dtype)
    if isinstance(chain, str):
        raise BackendError(explain_error(f"cuDNN has no plan for {problem}", chain))
    return plan_list(LIBRARY, Asked(problem, device, requirements or Requirements.current(), chain)).get(0)


def serialize_plans(problems: Sequence[ConvProblem], device: DeviceProperties,
                    requirements: Requirements | None = None) -> dict[str, bytes]:
    """The best plan of each problem for a GPU that need not be there, as bytes by the problem's text; load with `load_plan`."""
    return {str(problem): first_plan(problem, device, requirements).to_bytes() for problem in problems}


LIBRARY: PlanMaker = LibraryPlans()
_stand_in: ContextVar[PlanMaker | None] = ContextVar("stand_in", default=None)
_given: ContextVar[Mapping[str, CudnnPlan]] = ContextVar("given", default={})  # noqa: B039 - never written


def registered() -> PlanMaker | None:
    """The stand-in that is registered."""
    return _stand_in.get()


def maker_for(device: str) -> PlanMaker | None:
    """What makes the plans of a device: the stand-in, if one is registered, else the library; None for the emulator."""
    return _stand_in.get() or (None if device == "emulator" else LIBRARY)


@contextmanager
def stand_in(maker: PlanMaker) -> Iterator[None]:
    """Inside, plans are made by `maker` instead of the library, for the emulator too. For tests."""
    token = _stand_in.set(maker)
    try:
        yield
    finally:
        _stand_in.reset(token)


@contextmanager
def given_plans(by_key: Mapping[str, CudnnPlan]) -> Iterator[None]:
    """Inside, these plans go first, by `Asked.key`."""
    token = _given.set(by_key)
    try:
        yield
    finally:
        _given.reset(token)


def given_plan(asked: Asked) -> CudnnPlan | None:
    """The plan that was given for a question."""
    return _given.get().get(asked.key)
