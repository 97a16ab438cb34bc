"""Function: what `compile` gives. Keeps one program for each set of input shapes it has met."""
from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import FunctionError, InternalError, explain_error
from ..graph import FunctionGraph, Variable
from ..rewrites.log import Log, Rewrites
from .arguments import In, match_arguments
from .calls import Call, CpuCall, carry_out
from .kept import Kept
from .mode import Mode
from .profile import Profile
from .program import Program
from .shared import SharedVariable
from .state_groups import UsedState

if TYPE_CHECKING:
    from .cross_compile import CrossProgram
    from .device_program import DeviceProgram

Array = np.ndarray[Any, Any]
MAX_PROGRAMS = 256

# Attributes of Theano's functions that are not here, and what to write instead.
_ABSENT = {"maker": "function.graph is the rewritten graph, function.graph.nodes its nodes; function.recipe what was given",
           "fgraph": "function.graph",
           "outputs": "function.recipe.outputs",
           "updates": "function.recipe.updates",
           "trust_input": "leave it out: checking an argument of the right dtype costs less than a microsecond",
           "sync_shared": "leave it out: get_value() waits for whatever still runs",
           "value": "shared variables have get_value()", "container": "shared variables have get_value()",
           "input_storage": "call the function with its arguments", "output_storage": "the call returns the outputs"}


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

    `graph` is the captured and rewritten graph, `log` what rewriting for any shape noted, `programs` those made so far.
    Calls from several threads wait for each other.
    """

    def __init__(self, graph: FunctionGraph, recipe: Recipe, structure: Callable[[list[Array]], Any], mode: Mode,
                 device: str, name: str, log: Log,
                 build: Callable[[FunctionGraph, dict[Variable, Array]], Kept]) -> None:
        self.graph = graph
        self.name = name
        self.mode = mode
        self.device = device
        self.log: Log = log
        self.profile = Profile(name, device)
        self.profiling = bool(recipe.options.get("profile"))
        self.__name__ = name
        self.recipe = recipe
        self._structure = structure
        self._build = build
        self._lock = threading.RLock()
        self._programs: OrderedDict[tuple[Any, ...], list[Kept]] = OrderedDict()
        self._shared = tuple(leaf for leaf in graph.leaves if isinstance(leaf, SharedVariable))
        self._state = UsedState(leaf.container for leaf in self._shared)
        self._leaves = call_leaves(graph)
        self._inputs = recipe.inputs
        self._converts = [(position, each.convert) for position, each in enumerate(recipe.inputs)]
        self._ready: dict[tuple[Any, ...], Kept] = {}  # by shapes of inputs: programs that know where the present state lies
        self._last: Kept | None = None

    @property
    def inputs(self) -> tuple[In, ...]:
        """The inputs, with their options."""
        return self.recipe.inputs

    @property
    def shared_variables(self) -> tuple[SharedVariable, ...]:
        """The state that the function reads or updates."""
        return self._shared

    @property
    def programs(self) -> tuple[Program | DeviceProgram | CrossProgram, ...]:
        """The programs made so far, the one used last at the end."""
        return tuple(kept.program for group in self._programs.values() for kept in group)

    @property
    def kept(self) -> tuple[Kept, ...]:
        """The programs with what rewriting did to the bound graph of each."""
        return tuple(kept for group in self._programs.values() for kept in group)

    @property
    def rewrites(self) -> Rewrites:
        """Every application of a rewrite, in order: those for any shape, then those for the program used last.

        Each has `phase`, `rule`, `before`, `after` (tuples of variables) and `sources`, the lines of yours that it touched;
        printed, the list has a line for each.
        """
        return Rewrites((self.log, *(kept.log for kept in self.kept[-1:])))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run on these arguments; updates of shared variables take effect when the whole run has succeeded."""
        if self.profiling:
            return self._call_profiled(args, kwargs)
        arguments = self._match(args, kwargs)
        with self._lock:
            return self._structure(self._run_on_state(arguments) if self._shared else self._run(arguments))

    def _run_on_state(self, arguments: list[Any]) -> list[Any]:
        """A run that no other function disturbs which shares state with this one."""
        return self._state.holding(partial(self._run, arguments))

    def _call_profiled(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call whose time in Python around the program is noted too."""
        with self._lock:
            start, made = time.perf_counter(), self.profile.making_seconds
            result = self._structure(self._run_on_state(self._match(args, kwargs)))
            if not self.mode.check:
                self.profile.note_call(start, self.profile.making_seconds - made)
        return result

    def _match(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        if not kwargs and len(args) == len(self._inputs):
            return [convert(args[position], position) for position, convert in self._converts]
        return match_arguments(self._inputs, args, kwargs, self.name)

    def _run(self, arguments: list[Array]) -> list[Array]:
        kept = self._kept_for(arguments)
        program, inputs = kept.program, kept.inputs_of(arguments)
        if not isinstance(program, Program):
            raise InternalError("a function on the CPU has a program for another device")
        if kept.changes_state or kept.must_prepare or self.profiling or self.mode.check:
            return self._carry_out(CpuCall(kept, program, inputs, self._state), arguments)
        return program.run(inputs, None, False)

    def _kept_for(self, arguments: list[Array]) -> Kept:
        """The program for these arguments, which knows where the state lies.

        While no state changes, but by this function in place, nothing is done for each shared variable.
        """
        if self._shared and self._state.has_changed:
            self._ready.clear()
        shapes = tuple([array.shape for array in arguments])
        kept = self._ready.get(shapes)
        if kept is None:
            return self._made_ready(arguments, shapes)
        if kept is not self._last:
            self._use(kept)
        return kept

    def _made_ready(self, arguments: list[Array], shapes: tuple[Any, ...]) -> Kept:
        """The same, where state has changed or the shapes are others.

        Nobody knows of a borrowed array whether it has changed, nor of a program with guards whether they hold: both are looked at
        in every call.
        """
        kept = self._program(self._leaf_values(arguments))
        for container in kept.direct:
            container.make_private()
        if isinstance(kept.program, Program):
            kept.program.bind_state([container.array for container in kept.state])
        kept.look_at_state()
        self._state.note()
        if not kept.guards and not any(container.borrowed for container in self._state.containers):
            self._ready[shapes] = kept
        return kept

    def _carry_out(self, call: Call, arguments: list[Any]) -> list[Any]:
        """Run a call, whole."""
        if self.mode.check:
            return carry_out(call, partial(self._run_checked, self._leaf_values(arguments)))
        prepare = call.kept.must_prepare
        results = carry_out(call, partial(self._run_profiled if self.profiling else _run_plainly, prepare))
        if prepare:
            call.kept.note_prepared()
        return results

    def _leaf_values(self, arguments: list[Any]) -> list[Any]:
        return arguments + [leaf.container.array for leaf in self._shared]

    def _run_checked(self, leaves: list[Any], call: Call) -> None:
        """A run that watches itself (`Mode.check`)."""
        from .checked import check_rewrites

        bindings = self._bindings(leaves)
        values = {leaf: np.array(array) for leaf, array in call.kept.bindings(bindings).items()}
        if self.mode.check == "debug":
            check_rewrites(self.log, bindings)
            check_rewrites(call.kept.log, values)
        call.run_checked(self.mode.check, values)

    def _run_profiled(self, prepare: bool, call: Call) -> None:
        program = call.kept.program
        seconds, waits = np.zeros(len(program.steps)), np.zeros(len(program.steps))
        start = time.perf_counter()
        call.run_profiled(prepare, seconds, waits)
        self.profile.note(program, time.perf_counter() - start, seconds, waits)

    def _program(self, arrays: list[Any]) -> Kept:
        """The program for the shapes of these values of all leaves; made now if there is none."""
        key = tuple([array.shape for array in arrays])
        kept = self._find(key, arrays)
        if kept is None:
            start = time.perf_counter()
            kept = self._build(self.graph, self._bindings(arrays))
            self.profile.making_seconds += time.perf_counter() - start
            kept.key = key
            self._programs.setdefault(key, []).insert(0, kept)
        self._use(kept)
        self._forget_old()
        return kept

    def _use(self, kept: Kept) -> None:
        """Note which program was used last."""
        self._programs.move_to_end(kept.key)
        self._last = kept

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
            self._ready.clear()
            if not group:
                del self._programs[key]

    def prepare(self, *shapes: Sequence[int]) -> Program | DeviceProgram | CrossProgram:
        """Make (or find) the program for inputs of these shapes, without running it.

        Only for functions whose shapes do not depend on input values; the shared variables' present shapes count.

        Raises:
            FunctionError: not one shape for each input, or something that is no shape.
        """
        inputs = self.recipe.inputs
        is_shape = [isinstance(each, (tuple, list)) and all(isinstance(size, (int, np.integer)) and size >= 0 for size in each)
                    for each in shapes]
        if len(shapes) != len(inputs) or not all(is_shape):
            names = ", ".join(each.name or "unnamed" for each in inputs) or "none"
            raise FunctionError(explain_error(f"{self.name}.prepare takes one shape for each input ({names})",
                                              ", ".join(map(repr, shapes)) or "no shape",
                                              "give tuples of sizes: prepare((2, 3), (4,))"))
        zeros = [np.zeros(shape, each.numpy_dtype) for shape, each in zip(shapes, inputs, strict=True)]
        with self._lock:
            return self._program(self._leaf_values(zeros)).program

    def explain(self, what: Any = None, format: str = "text") -> Any:
        """What the program used last does and why.

        For every convolution its problem, the implementation that runs it, the expected or measured time of every candidate or why
        it refused, what was fused into it and what was not and why, how exact it is, and the user's line; the other steps as a
        table; what rewriting did and what it declined and why; changes of layout, what they cost and save; the memory plan; what is
        copied in and out; what the bits of the results depend on.  Kernels are chosen for shapes, so before the first call (or
        `prepare`) there is little to tell, and the text says so.

        Args:
            what: ask for some steps only: a variable, an Apply, the name of a variable (of an input: the steps that read it) or of
                an updated shared variable, of an op ("Conv") or implementation, or a step's number.
            format: "text"; "dict": plain data, fit for JSON; "html": a piece of HTML for a page or a notebook.

        Raises:
            ArgumentError: no step is meant by `what`, or `format` is none of these.
        """
        from ..printing.explain import explain

        return explain(self, what, format)

    def sources(self) -> dict[str, str]:
        """The generated source of every kernel of the programs made so far, by the kernel's name.

        One name with several texts (the same kernel for other sizes, say) gets " (2)", " (3)" behind it.  Steps that run their
        NumPy reference, and cuDNN's plans, have no source.
        """
        from .sources import sources_of

        return sources_of(self.programs)

    def save(self, path: Any) -> None:
        """Write the function to a file that `sc.load` reads: its expressions, options, constants and the present state.

        Unlike a pickle, the file holds nothing that is run when it is loaded.  It is replaced as a whole or not at all.

        Raises:
            ArgumentError: the path is a folder, or lies in none.
        """
        from .saving import save

        save(self, path)

    def copy(self, share_memory: bool = False, swap: Mapping[SharedVariable, SharedVariable] | None = None,
             delete_updates: bool = False, name: str | None = None, profile: bool | None = None) -> Function:
        """The same function compiled once more, with other state where `swap` says so.

        Args:
            share_memory: for programs written for Theano; here every function has its memory to itself.
            swap: shared variable that this function uses → the one that stands in its place, of a type that fits.
            delete_updates: leave out all updates, default ones too.
            name, profile: instead of this function's.

        Raises:
            GraphTypeError: a variable of `swap` is no state of this function, or its replacement has another type.

        Theano: `Function.copy`.

        >>> import symconv as sc
        >>> state, other = sc.shared(1.0), sc.shared(10.0)
        >>> count = sc.compile([], state, updates=[(state, state + 1)])
        >>> count_other = count.copy(swap={state: other})
        >>> float(count_other()), float(other.get_value()), float(state.get_value())
        (10.0, 11.0, 1.0)
        """
        from .function_copy import copied

        return copied(self, swap or {}, delete_updates, name, profile)

    def get_shared(self) -> list[SharedVariable]:
        """The state that the function reads or updates (Theano's name of `shared_variables`)."""
        return list(self._shared)

    def free(self) -> None:
        """Drop the programs and their memory; the next call makes them again."""
        with self._lock:
            self._drop_programs()

    def _drop_programs(self) -> None:
        self._programs.clear()
        self._ready.clear()
        self._last = None

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(explain_error(f"a function has no attribute {name!r}", do=_ABSENT.get(name, "")))

    def _repr_html_(self) -> str:
        """A summary for notebooks."""
        from ..printing.notebook import function_as_html

        return function_as_html(self)

    def __repr__(self) -> str:
        return f"<symconv function {self.name} on {self.device}: {len(self.recipe.inputs)} inputs>"

    def __reduce__(self) -> Any:
        from .compile import compile_recipe

        return compile_recipe, (self.recipe,)


def call_leaves(graph: FunctionGraph) -> tuple[Variable, ...]:
    """The leaves that have an array in every call, in its order: inputs, then state."""
    return (*graph.inputs, *(leaf for leaf in graph.leaves if isinstance(leaf, SharedVariable)))


def program_order(graph: FunctionGraph, program: Program | DeviceProgram | CrossProgram,
                  leaves: dict[Variable, Variable]) -> tuple[int, ...] | None:
    """For each leaf of a program its place among a call's arrays; None where that is 0, 1, 2, … for all of them."""
    places = {leaf: place for place, leaf in enumerate(call_leaves(graph))}
    order = tuple(places[leaves[leaf]] for leaf in program.leaves)
    return None if order == tuple(range(len(places))) else order


def _run_plainly(prepare: bool, call: Call) -> None:
    call.run(prepare)


def _guards_hold(kept: Kept, arrays: dict[Variable, Array]) -> bool:
    bindings = kept.bindings(arrays)
    return all(guard.holds(bindings) for guard in kept.guards)
