"""Function: what `compile` gives. Keeps one program for each set of input shapes it has met."""
from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InternalError
from ..graph import FunctionGraph, Variable
from .arguments import In, match_arguments
from .bind import Guard
from .container import Container
from .mode import Mode
from .profile import Profile
from .program import Program
from .shared import SharedVariable

if TYPE_CHECKING:
    from .device_program import DeviceProgram

Array = np.ndarray[Any, Any]
MAX_PROGRAMS = 256


@dataclass
class Kept:
    """A program with how its leaves correspond to the function's, the guards that must hold, and what rewriting noted."""

    program: Program | DeviceProgram
    leaves: dict[Variable, Variable]
    guards: tuple[Guard, ...]
    log: Any
    order: tuple[int, ...] | None = None
    prepared_for: tuple[int, ...] | None = None

    def in_order(self, arrays: list[Array]) -> list[Array]:
        """The arrays of the function's leaves in the order of the program's (`order`; None where it is the same)."""
        return arrays if self.order is None else [arrays[place] for place in self.order]

    def bindings(self, arrays: dict[Variable, Array]) -> dict[Variable, Array]:
        """The arrays of the function's leaves as those of the program's."""
        return {bound: arrays[leaf] for bound, leaf in self.leaves.items()}

    def must_prepare(self) -> bool:
        """Whether the program's prepared steps must run again: their state has changed, or may have, unseen."""
        if not self.program.n_prepared:
            return False
        return self.prepared_for != self._versions or any(container.borrowed for container in self.watched)

    def note_prepared(self) -> None:
        """The prepared steps have run for the present state."""
        self.prepared_for = self._versions

    @property
    def _versions(self) -> tuple[int, ...]:
        return tuple([container.version for container in self.watched])

    @cached_property
    def watched(self) -> tuple[Container, ...]:
        """The state that prepared steps read."""
        return tuple(_container(self.leaves[bound]) for bound in self.program.watched)

    @cached_property
    def direct(self) -> tuple[Container, ...]:
        """The state that the program writes in place."""
        return tuple(_container(self.leaves[bound]) for bound in self.program.schedule.direct)

    @cached_property
    def swapped(self) -> tuple[Container, ...]:
        """The state whose new value is another array."""
        return tuple(_container(self.leaves[bound]) for bound, _ in self.program.schedule.swapped)

    @cached_property
    def is_plain(self) -> bool:
        """Whether a run is no more than the program's: no prepared steps, no state written, arrays in its order."""
        return not (self.program.n_prepared or self.direct or self.swapped or self.order)

    @cached_property
    def n_outputs(self) -> int:
        """How many of the program's results are outputs; the rest are new values of `swapped`."""
        return len(self.program.schedule.outputs)


@dataclass(frozen=True, slots=True)
class Recipe:
    """What the user gave to `compile`: enough to compile again after unpickling."""

    inputs: tuple[In, ...]
    outputs: Any
    updates: tuple[tuple[SharedVariable, Variable], ...]
    givens: dict[Variable, Variable]
    options: dict[str, Any]


class Function:
    """A compiled function. Call it with arrays; it returns arrays in the form of its outputs.

    `graph` is the captured and rewritten graph, `rewrites` what rewriting did to it, `programs` those made so far.
    Calls from several threads wait for each other.
    """

    def __init__(self, graph: FunctionGraph, recipe: Recipe, structure: Callable[[list[Array]], Any], mode: Mode,
                 device: str, name: str, rewrites: Any,
                 build: Callable[[FunctionGraph, dict[Variable, Array]], Kept]) -> None:
        self.graph = graph
        self.name = name
        self.mode = mode
        self.device = device
        self.rewrites = rewrites
        self.profile = Profile(name)
        self.profiling = bool(recipe.options.get("profile"))
        self.__name__ = name
        self.recipe = recipe
        self._structure = structure
        self._build = build
        self._lock = threading.RLock()
        self._programs: OrderedDict[tuple[Any, ...], list[Kept]] = OrderedDict()
        self._shared = tuple(leaf for leaf in graph.leaves if isinstance(leaf, SharedVariable))
        self._locked = tuple(sorted({id(leaf.container): leaf.container for leaf in self._shared}.values(), key=id))
        self._leaves = call_leaves(graph)
        self._inputs = recipe.inputs
        self._converts = [(position, each.convert) for position, each in enumerate(recipe.inputs)]
        self._last_key: tuple[Any, ...] | None = None
        self._last_kept: Kept | None = None

    @property
    def inputs(self) -> tuple[In, ...]:
        """The inputs, with their options."""
        return self.recipe.inputs

    @property
    def shared_variables(self) -> tuple[SharedVariable, ...]:
        """The state that the function reads or updates."""
        return self._shared

    @property
    def programs(self) -> tuple[Program | DeviceProgram, ...]:
        """The programs made so far, the one used last at the end."""
        return tuple(kept.program for group in self._programs.values() for kept in group)

    @property
    def kept(self) -> tuple[Kept, ...]:
        """The programs with what rewriting did to the bound graph of each."""
        return tuple(kept for group in self._programs.values() for kept in group)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run on these arguments; updates of shared variables take effect when the whole run has succeeded."""
        arguments = self._match(args, kwargs)
        with self._lock:
            if not self._locked:
                return self._structure(self._run(arguments))
            with ExitStack() as stack:
                for container in self._locked:
                    stack.enter_context(container.lock)
                return self._structure(self._run(arguments))

    def _match(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        if not kwargs and len(args) == len(self._inputs):
            return [convert(args[position], position) for position, convert in self._converts]
        return match_arguments(self._inputs, args, kwargs, self.name)

    def _run(self, arguments: list[Array]) -> list[Array]:
        arrays = arguments + [leaf.container.array for leaf in self._shared] if self._shared else arguments
        kept = self._program(arrays)
        program = kept.program
        if kept.is_plain and isinstance(program, Program) and not (self.profiling or self.mode.check):
            return program.run(arrays, None, False)
        if kept.direct:
            for container in kept.direct:
                container.make_private()
            arrays = arguments + [leaf.container.array for leaf in self._shared]
        prepare = kept.must_prepare()
        try:
            results = self._results(kept, arrays, prepare)
        finally:  # an interrupt of the user's arrives behind the call that wrote
            for container in kept.direct:
                container.note_written()
        if prepare:
            kept.note_prepared()
        if kept.swapped:
            for container, array in zip(kept.swapped, results[kept.n_outputs:], strict=True):
                container.replace(array)
            del results[kept.n_outputs:]
        return results

    def _results(self, kept: Kept, arrays: list[Array], prepare: bool) -> list[Array]:
        if self.mode.check:
            return self._checked(kept, arrays)
        if self.profiling:
            return self._profiled(kept, arrays, prepare)
        return _on_cpu(kept).run(kept.in_order(arrays), None, prepare)

    def _checked(self, kept: Kept, arrays: list[Array]) -> list[Array]:
        """A run that watches itself (`Mode.check`)."""
        from .checked import CheckedRun, check_rewrites

        if self.mode.check == "debug":
            bindings = self._bindings(arrays)
            check_rewrites(self.rewrites, bindings)
            check_rewrites(kept.log, kept.bindings(bindings))
        return CheckedRun(_on_cpu(kept), kept.in_order(arrays), self.mode.check).run()

    def _profiled(self, kept: Kept, arrays: list[Array], prepare: bool) -> list[Array]:
        start, step_seconds = time.perf_counter(), np.zeros(len(kept.program.steps))
        results = _on_cpu(kept).run(kept.in_order(arrays), step_seconds, prepare)
        self.profile.note(kept.program, time.perf_counter() - start, step_seconds)
        return results

    def _program(self, arrays: list[Array]) -> Kept:
        """The program for the shapes of these arrays; made now if there is none."""
        key = tuple([array.shape for array in arrays])
        if key == self._last_key and self._last_kept is not None:
            return self._last_kept
        kept = self._find(key, arrays)
        if kept is None:
            kept = self._build(self.graph, self._bindings(arrays))
            self._programs.setdefault(key, []).insert(0, kept)
        self._programs.move_to_end(key)
        self._forget_old()
        self._last_key, self._last_kept = (key, None if kept.guards else kept)
        return kept

    def _find(self, key: tuple[Any, ...], arrays: list[Array]) -> Kept | None:
        """The program kept for these shapes whose guards hold."""
        for kept in self._programs.get(key, ()):
            if not kept.guards or _guards_hold(kept, self._bindings(arrays)):
                return kept
        return None

    def _bindings(self, arrays: list[Any]) -> dict[Variable, Array]:
        """The leaves with their values on the host."""
        return dict(zip(self._leaves, arrays, strict=True))

    def _forget_old(self) -> None:
        """Keep the number of programs bounded: the ones used longest ago go."""
        while sum(map(len, self._programs.values())) > MAX_PROGRAMS:
            key, group = next(iter(self._programs.items()))
            group.pop()
            if not group:
                del self._programs[key]

    def prepare(self, *shapes: Sequence[int]) -> Program | DeviceProgram:
        """Make (or find) the program for inputs of these shapes, without running it.

        Only for functions whose shapes do not depend on input values; the shared variables' present shapes count.
        """
        zeros = [np.zeros(shape, each.numpy_dtype) for shape, each in zip(shapes, self.recipe.inputs, strict=True)]
        with self._lock:
            return self._program(zeros + [leaf.container.array for leaf in self._shared]).program

    def explain(self, node_or_name: Any = None, as_dict: bool = False) -> Any:
        """What the program used last does and why, as text (`as_dict`: as plain data).

        For every convolution its problem, the implementation that runs it, the expected time of every candidate or why it
        refused, what was fused into it and the user's line; the other steps as a table; what rewriting did and what
        it declined and why; the memory plan.  Kernels are chosen for shapes, so before the first call (or `prepare`)
        there is little to tell, and the text says so.

        Args:
            node_or_name: ask for some steps only: a variable, an Apply, the name of a variable or of an updated shared
                variable, of an op ("Conv") or implementation, or a step's number.

        Raises:
            ArgumentError: no step is meant by `node_or_name`.
        """
        from ..printing.explain import explain, explain_as_dict

        return (explain_as_dict if as_dict else explain)(self, node_or_name)

    def save(self, path: Any) -> None:
        """Write the function to a file that `sc.load` reads: its expressions, options, constants and the present state.

        Unlike a pickle, the file holds nothing that is run when it is loaded.  It is replaced as a whole or not at all.
        """
        from .saving import save

        save(self, path)

    def free(self) -> None:
        """Drop the programs and their memory; the next call makes them again."""
        with self._lock:
            self._programs.clear()
            self._last_key, self._last_kept = None, None

    def __repr__(self) -> str:
        return f"<symconv function {self.name} on {self.device}: {len(self.recipe.inputs)} inputs>"

    def __reduce__(self) -> Any:
        from .compile import compile_recipe

        return compile_recipe, (self.recipe,)


def call_leaves(graph: FunctionGraph) -> tuple[Variable, ...]:
    """The leaves that have an array in every call, in its order: inputs, then state."""
    return (*graph.inputs, *(leaf for leaf in graph.leaves if isinstance(leaf, SharedVariable)))


def program_order(graph: FunctionGraph, program: Program | DeviceProgram,
                  leaves: dict[Variable, Variable]) -> tuple[int, ...] | None:
    """For each leaf of a program its place among a call's arrays; None where that is 0, 1, 2, … for all of them."""
    places = {leaf: place for place, leaf in enumerate(call_leaves(graph))}
    order = tuple(places[leaves[leaf]] for leaf in program.leaves)
    return None if order == tuple(range(len(places))) else order


def _on_cpu(kept: Kept) -> Program:
    if not isinstance(kept.program, Program):
        raise InternalError("a function on the CPU has a program for another device")
    return kept.program


def _container(leaf: Variable) -> Container:
    if not isinstance(leaf, SharedVariable):
        raise InternalError(f"{leaf!r} is updated but is no shared variable")
    return leaf.container


def _guards_hold(kept: Kept, arrays: dict[Variable, Array]) -> bool:
    bindings = kept.bindings(arrays)
    return all(guard.holds(bindings) for guard in kept.guards)
