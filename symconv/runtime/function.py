"""Function: what `compile` gives. Keeps one program for each set of input shapes it has met."""
from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..graph import Constant, FunctionGraph, Variable
from .arguments import In, match_arguments
from .bind import Guard
from .mode import Mode
from .profile import Profile
from .program import Program
from .shared import SharedVariable

Array = np.ndarray[Any, Any]
MAX_PROGRAMS = 256


@dataclass(frozen=True, slots=True)
class Kept:
    """A program with how its leaves correspond to the function's, the guards that must hold, and what rewriting noted."""

    program: Program
    leaves: dict[Variable, Variable]
    guards: tuple[Guard, ...]
    log: Any

    def arrays(self, arrays: dict[Variable, Array]) -> dict[Variable, Array]:
        """The arrays of the function's leaves as those of the program's."""
        return {bound: arrays[leaf] for bound, leaf in self.leaves.items()}


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
        self._recipe = recipe
        self._structure = structure
        self._build = build
        self._lock = threading.RLock()
        self._programs: OrderedDict[tuple[Any, ...], list[Kept]] = OrderedDict()
        self._shared = tuple(leaf for leaf in graph.leaves if isinstance(leaf, SharedVariable))
        self._locked = tuple(sorted({id(leaf.container): leaf.container for leaf in self._shared}.values(), key=id))
        self._leaves = tuple(leaf for leaf in graph.leaves if not isinstance(leaf, Constant))

    @property
    def inputs(self) -> tuple[In, ...]:
        """The inputs, with their options."""
        return self._recipe.inputs

    @property
    def shared_variables(self) -> tuple[SharedVariable, ...]:
        """The state that the function reads or updates."""
        return self._shared

    @property
    def programs(self) -> tuple[Program, ...]:
        """The programs made so far, the one used last at the end."""
        return tuple(kept.program for group in self._programs.values() for kept in group)

    @property
    def kept(self) -> tuple[Kept, ...]:
        """The programs with what rewriting did to the bound graph of each."""
        return tuple(kept for group in self._programs.values() for kept in group)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run on these arguments; updates of shared variables take effect when the whole run has succeeded."""
        arguments = match_arguments(self._recipe.inputs, args, kwargs, self.name)
        with self._lock, ExitStack() as stack:
            for container in self._locked:
                stack.enter_context(container.lock)
            return self._structure(self._run(arguments))

    def _run(self, arguments: Sequence[Array]) -> list[Array]:
        arrays: dict[Variable, Array] = dict(zip(self.graph.inputs, arguments, strict=True))
        arrays.update((leaf, leaf.container.array) for leaf in self._shared)
        kept = self._program(arrays)
        schedule = kept.program.schedule
        for bound in schedule.direct:
            leaf = kept.leaves[bound]
            assert isinstance(leaf, SharedVariable)
            leaf.container.make_private()
            arrays[leaf] = leaf.container.array
        results = self._timed_run(kept, arrays)
        count = len(schedule.outputs)
        for (bound, _), array in zip(schedule.swapped, results[count:], strict=True):
            _container(kept.leaves[bound]).replace(array)
        for bound in schedule.direct:
            _container(kept.leaves[bound]).version += 1
        return results[:count]

    def _timed_run(self, kept: Kept, arrays: dict[Variable, Array]) -> list[Array]:
        if not self.profiling:
            return kept.program.run(kept.arrays(arrays))
        return self.profile.run(kept.program, kept.arrays(arrays))

    def _program(self, arrays: dict[Variable, Array]) -> Kept:
        """The program for the shapes of these arrays; made now if there is none."""
        key = tuple(arrays[leaf].shape for leaf in self._leaves)
        group = self._programs.get(key)
        if group is not None:
            for kept in group:
                if not kept.guards or _guards_hold(kept, arrays):
                    self._programs.move_to_end(key)
                    return kept
        kept = self._build(self.graph, arrays)
        self._programs.setdefault(key, []).insert(0, kept)
        self._programs.move_to_end(key)
        self._forget_old()
        return kept

    def _forget_old(self) -> None:
        """Keep the number of programs bounded: the ones used longest ago go."""
        while sum(map(len, self._programs.values())) > MAX_PROGRAMS:
            key, group = next(iter(self._programs.items()))
            group.pop()
            if not group:
                del self._programs[key]

    def prepare(self, *shapes: Sequence[int]) -> Program:
        """Make (or find) the program for inputs of these shapes, without running it.

        Only for functions whose shapes do not depend on input values; the shared variables' present shapes count.
        """
        zeros = [np.zeros(shape, each.numpy_dtype) for shape, each in zip(shapes, self._recipe.inputs, strict=True)]
        with self._lock:
            arrays: dict[Variable, Array] = dict(zip(self.graph.inputs, zeros, strict=True))
            arrays.update((leaf, leaf.container.array) for leaf in self._shared)
            return self._program(arrays).program

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

    def free(self) -> None:
        """Drop the programs and their memory; the next call makes them again."""
        with self._lock:
            self._programs.clear()

    def __repr__(self) -> str:
        return f"<symconv function {self.name} on {self.device}: {len(self._recipe.inputs)} inputs>"

    def __reduce__(self) -> Any:
        from .compile import compile_recipe

        return compile_recipe, (self._recipe,)


def _container(leaf: Variable) -> Any:
    assert isinstance(leaf, SharedVariable)
    return leaf.container


def _guards_hold(kept: Kept, arrays: dict[Variable, Array]) -> bool:
    bindings = kept.arrays(arrays)
    return all(guard.holds(bindings) for guard in kept.guards)
