"""compile: from an expression to a function. Reads like the table in `symconv/README.md`, "Life of a graph"."""
from __future__ import annotations

import logging
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..config import config
from ..errors import ArgumentError, GraphTypeError, MissingInputError, UnusedInputError, explain_error
from ..graph import Constant, FunctionGraph, Variable, ancestors, capture, leaves
from ..graph.operators import meaning
from ..graph.provenance import current_source
from ..graph.verify import verify
from ..ops.convolution import Conv
from ..rewrites.pipeline import rewrite_bound, rewrite_symbolic
from ..target import Target
from .arguments import In, Out, make_inputs
from .bind import bind
from .devices.find import ALIGNMENT as DEVICE_ALIGNMENT
from .devices.find import find_device, is_device
from .function import Function, Recipe, program_order
from .kept import Kept
from .memory import ALIGNMENT, MemoryPlan, plan_memory
from .mode import Mode, find_mode
from .program import Program
from .schedule import Schedule, make_schedule
from .select import describe_choices
from .shared import SharedVariable, check_update
from .state_clones import one_for_each_value
from .targets import check_cudnn_wanted, make_target

if TYPE_CHECKING:
    from .cross_compile import CrossProgram
    from .device_program import DeviceProgram
    from .devices.interface import Device
    from .machine_code import MachineCode

Array = np.ndarray[Any, Any]
logger = logging.getLogger("symconv")
Updates = Sequence[tuple[SharedVariable, Any]] | Mapping[SharedVariable, Any] | None
Givens = Sequence[tuple[Variable, Any]] | Mapping[Variable, Any] | None


def compile(inputs: Sequence[Variable | In], outputs: Any = None, updates: Updates = (),
            givens: Givens = (), mode: Mode | str | None = None,
            device: str | None = None, name: str | None = None, on_unused_input: str | None = None,
            allow_input_downcast: bool | None = None, no_default_updates: bool | Sequence[SharedVariable] = False,
            profile: bool | None = None, target: str | None = None) -> Function:
    """Compile an expression into a function of arrays.

    Args:
        inputs: variables (or `In(variable, …)` for options) in the order of the arguments.
        outputs: a variable, a list or tuple, a dict with text keys, or None; the function returns the same form.
        updates: pairs (shared variable, new value), or a mapping; None as (). All new values are computed from the old ones, then
            stored together.
        givens: replacements of variables, as pairs or a mapping, put in place before anything else.
        mode: "fast_run" (default), "fast_compile", "reference", "debug", "nan_guard", or a `Mode`.
        device: "cpu" (default), "cuda" or "cuda:1" (an NVIDIA GPU, through CuPy: symconv[cuda13] or symconv[cuda12]), "emulator"
            (the kernels for CUDA, run on the CPU thread by thread: slow, for tests).
        name: for printing; by default the place where it was compiled.
        on_unused_input: "raise" (default), "warn" or "ignore".
        allow_input_downcast: True converts arguments of any dtype; False never loses precision; None lets Python numbers
            round.
        no_default_updates: leave out the default updates of all shared variables, or of those listed.
        profile: note the time of every step in `function.profile`; None: `config.profile`.
        target: with device="cuda", a GPU or an architecture ("H200", "sm_90") that need not be on this machine: kernels are
            compiled and cuDNN's plans made for it, to be saved with `Function.save` and loaded where it is; the function does not
            run here.  An architecture stands for one GPU, which the function names: sm_75 T4, 80 A100, 86 RTX 3090, 89 RTX 4090,
            90 H200, 100 B200, 120 RTX 5090.

    Raises:
        MissingInputError, UnusedInputError, GraphTypeError, ShapeError, ArgumentError: what was given does not fit
            together; the message names the variable and the line where it was made.
        BackendError: this machine cannot run it.

    Theano: `theano.function`.

    >>> import symconv as sc, symconv.tensor as T
    >>> x = T.vector("x")
    >>> double = sc.compile([x], 2 * x)
    >>> double([1.0, 2.5]).tolist()
    [2.0, 5.0]
    """
    made = make_inputs(inputs, allow_input_downcast)
    options = {"mode": mode, "device": device, "name": name or _default_name(), "on_unused_input": on_unused_input,
               "profile": config.profile if profile is None else bool(profile), "target": target}
    flat = flat_outputs(outputs)
    given = _pairs("givens", givens)
    pairs = _all_updates(flat, _pairs("updates", updates), given, no_default_updates)
    replaced = one_for_each_value(flat, pairs, _checked_givens(given, made))
    return compile_recipe(Recipe(tuple(made), outputs, tuple(pairs), replaced, options))


function = compile


def compile_recipe(recipe: Recipe, code: MachineCode | None = None) -> Function:
    """The function of a recipe: capture, verify, rewrite; programs are made when shapes are known.

    `code` is machine code that was saved with it, which is used where it fits.
    """
    options = recipe.options
    _show_log()
    mode, device = find_mode(options["mode"]), options["device"] or config.device
    aim = options.get("target")
    target = make_target(device, aim)
    outputs, structure = _flatten(recipe.outputs)
    inputs = [each.variable for each in recipe.inputs]
    with _Stage("capture"):
        graph = capture(inputs, outputs, recipe.updates, recipe.givens)
        _check_inputs(graph, inputs, recipe, options["on_unused_input"] or config.on_unused_input)
        _check_cudnn(graph, target)
        verify(graph, "capture")
    with _Stage("symbolic rewrites"):
        graph, log = rewrite_symbolic(graph, target, include=mode.include, exclude=mode.exclude)
    place = find_device(device) if is_device(device) and aim is None else None
    build = partial(_make_program, mode, target, place, _fitting(code, target) if place is not None else None)
    given = (graph, recipe, structure, mode, device, options["name"], log, build)
    result = _made_function(target, aim, place, *given)
    if all(leaf.type.is_static for leaf in graph.leaves if not isinstance(leaf, SharedVariable)) and not graph.inputs:
        return result
    if all(variable.type.is_static for variable in graph.inputs) and not _has_value_shapes(graph):
        result.prepare(*(variable.type.static_shape for variable in graph.inputs))
    return result


def _make_program(mode: Mode, target: Target, place: Device | None, code: MachineCode | None, graph: FunctionGraph,
                  arrays: dict[Variable, Array]) -> Kept:
    """The program of a captured graph for the shapes of these arrays."""
    with _Stage("bind"):
        bound = bind(graph, arrays)
    with _Stage("bound rewrites"):
        rewritten, log = rewrite_bound(bound.graph, target, include=mode.include, exclude=mode.exclude)
    state = [new for new, old in bound.leaves.items() if isinstance(old, SharedVariable)]
    with _Stage("select and schedule"):
        schedule = _schedule(rewritten, state, target, mode, code)
    with _Stage("plan memory"):
        memory = plan_memory(schedule.steps, ALIGNMENT if target.device == "cpu" else DEVICE_ALIGNMENT)
    with _Stage("build"):
        program = _program(rewritten, schedule, memory, place)
    if config.debug >= 3:
        logger.debug("selection\n%s", describe_choices(schedule.steps))
        logger.debug("program\n%s", program.describe())
    return Kept(program, bound.leaves, bound.guards, log, program_order(graph, program, bound.leaves))


def _schedule(graph: FunctionGraph, state: Sequence[Variable], target: Target, mode: Mode, code: MachineCode | None) -> Schedule:
    """The schedule; with machine code that was saved, its plans go first and its cubins are not compiled."""
    if code is None:
        return make_schedule(graph, state, target, mode.reference)
    from ..codegen.cudnn.plan_list import given_plans
    from .machine_code import plans_by_key, use_cubins

    with given_plans(plans_by_key(code)):
        schedule = make_schedule(graph, state, target, mode.reference)
    use_cubins(schedule.steps, code, target.arch)
    return schedule


def _program(graph: FunctionGraph, schedule: Schedule, memory: MemoryPlan,
             place: Device | None) -> Program | DeviceProgram | CrossProgram:
    if place is not None:
        return _device_program(graph, schedule, memory, place)
    if schedule.target.device == "cpu":
        return Program(graph, schedule, memory)
    from .cross_compile import CrossProgram

    return CrossProgram(graph, schedule, memory)


def _fitting(code: MachineCode | None, target: Target) -> MachineCode | None:
    if code is None:
        return None
    from .machine_code import fitting

    return fitting(code, target)


def _made_function(target: Target, aim: str | None, place: Device | None, *given: Any) -> Function:
    """A function on the CPU, on a device, or for a GPU that is not here; what that needs is imported when first asked for."""
    if aim is not None:
        from .cross_compile import CrossFunction

        return CrossFunction(*given, target=target, aim=aim)
    if place is None:
        return Function(*given)
    from .device_function import DeviceFunction

    return DeviceFunction(*given, place=place)


def _device_program(graph: FunctionGraph, schedule: Schedule, memory: MemoryPlan, place: Device) -> DeviceProgram:
    from .device_program import DeviceProgram

    return DeviceProgram(graph, schedule, memory, place)


def _show_log() -> None:
    """With `config.debug` symconv's log goes to standard error, unless the program has arranged where logs go."""
    if config.debug and not logger.hasHandlers():
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("symconv: %(message)s"))
        logger.addHandler(handler)
        logger.setLevel(logging.DEBUG)


class _Stage:
    """Logs how long a stage of compiling took (`SYMCONV_DEBUG=1`)."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.start = time.perf_counter()

    def __enter__(self) -> None:
        self.start = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        if config.debug >= 1:
            logger.info("%s: %.1f ms", self.name, (time.perf_counter() - self.start) * 1e3)


def flat_outputs(outputs: Any) -> list[Variable]:
    """The outputs as a list, whatever form the user gave them."""
    return _flatten(outputs)[0]


def _flatten(outputs: Any) -> tuple[list[Variable], Callable[[list[Array]], Any]]:
    """The outputs as a list, and what puts their arrays back into the user's form."""
    if outputs is None:
        return [], lambda arrays: None
    if isinstance(outputs, Mapping):
        keys = list(outputs)
        if not all(isinstance(key, str) for key in keys):
            raise GraphTypeError(explain_error("the keys of a function's outputs are texts", repr(keys)))
        return [_output(outputs[key]) for key in keys], lambda arrays: dict(zip(keys, arrays, strict=True))
    if isinstance(outputs, (list, tuple)):
        form = type(outputs)
        make = getattr(form, "_make", form)  # a named tuple takes its parts one by one
        return [_output(each) for each in outputs], lambda arrays: make(arrays)
    return [_output(outputs)], lambda arrays: arrays[0]


def _output(output: Any) -> Variable:
    if isinstance(output, Out):
        return output.variable
    return output if isinstance(output, Variable) else meaning("as_variable")(output)


def _pairs(argument: str, given: Any) -> list[tuple[Any, Any]]:
    """What an argument says, a mapping or a sequence of pairs, as pairs."""
    if given is None:
        return []
    if isinstance(given, Mapping):
        return list(given.items())
    pairs = list(given) if isinstance(given, Iterable) and not isinstance(given, (str, bytes)) else None
    if pairs is None or not all(isinstance(each, (tuple, list)) and len(each) == 2 for each in pairs):
        raise GraphTypeError(explain_error(f"{argument} are pairs (variable, value), or a mapping", repr(given),
                                           f"write {argument}=[(variable, value), ...]"))
    return [(old, new) for old, new in pairs]


def _all_updates(outputs: Sequence[Variable], updates: list[tuple[Any, Any]], givens: list[tuple[Any, Any]],
                 no_default_updates: bool | Sequence[SharedVariable]) -> list[tuple[SharedVariable, Variable]]:
    """The updates asked for, then the default updates of the state that is used and not yet updated."""
    pairs: dict[SharedVariable, Variable] = {}
    for target, new in updates:
        checked = check_update(target, new)
        if target in pairs:
            raise ArgumentError(explain_error(f"the shared variable {target.label!r} is updated twice",
                                              "two pairs with the same target", "combine them into one new value", checked.source))
        pairs[target] = checked
    replaced = [_as_variable(new) for _, new in givens]
    waiting: list[Variable] = [*outputs, *pairs.values(), *replaced]
    seen: set[Variable] = set()
    while waiting and no_default_updates is not True:
        used = [leaf for leaf in leaves(waiting) if isinstance(leaf, SharedVariable) and leaf not in seen]
        seen.update(used)
        waiting = []
        for leaf in used:
            left_out = not isinstance(no_default_updates, bool) and leaf in no_default_updates
            if leaf.default_update is not None and leaf not in pairs and not left_out:
                pairs[leaf] = check_update(leaf, leaf.default_update)
                waiting.append(pairs[leaf])
    return list(pairs.items())


def _as_variable(value: Any) -> Variable:
    return value if isinstance(value, Variable) else meaning("as_variable")(value)


def _checked_givens(givens: list[tuple[Any, Any]], inputs: Sequence[In]) -> dict[Variable, Variable]:
    replacements: dict[Variable, Variable] = {}
    given_inputs = {each.variable for each in inputs}
    for old, new in givens:
        if not isinstance(old, Variable):
            raise GraphTypeError(explain_error("givens replace symbolic variables", f"{type(old).__name__} {old!r}"))
        if old in given_inputs:
            raise ArgumentError(explain_error(f"{old.label!r} stands in the inputs and in the givens", "both",
                                              "remove it from one", old.source))
        value = new if isinstance(new, Variable) else meaning("as_variable")(new, dtype=old.dtype)
        if not old.type.accepts(value.type):
            raise GraphTypeError(explain_error(f"the replacement of {old.label!r} has another type",
                                               f"{value.type} for {old.type}", where=value.source or old.source))
        replacements[old] = value
    return replacements


def _check_inputs(graph: FunctionGraph, inputs: Sequence[Variable], recipe: Recipe, on_unused: str) -> None:
    given = set(inputs)
    for leaf in graph.leaves:
        if leaf not in given and not isinstance(leaf, (Constant, SharedVariable)):
            raise MissingInputError(explain_error(f"the function needs {leaf.label!r} ({leaf.type}), which is not among its inputs",
                                                  f"inputs: {', '.join(each.label for each in inputs) or 'none'}",
                                                  "add it to the inputs, or give it a value with givens", leaf.source))
    used = {variable for node in graph.nodes for variable in node.inputs} | set(graph.results)
    for position, variable in enumerate(inputs):
        if variable in used or on_unused == "ignore":
            continue
        needed = "only a replaced expression used it" if variable in ancestors(flat_outputs(recipe.outputs)) else "nothing uses it"
        text = explain_error(f"the input {variable.label!r} ({variable.type}, number {position}) is not used", needed,
                             'remove it, or pass on_unused_input="ignore"', variable.source)
        if on_unused == "raise":
            raise UnusedInputError(text)
        if on_unused != "warn":
            raise ArgumentError(explain_error("on_unused_input is one of raise, warn, ignore", repr(on_unused)))
        warnings.warn(text, stacklevel=5)


def _check_cudnn(graph: FunctionGraph, target: Target) -> None:
    if any(isinstance(node.op, Conv) for node in graph.nodes):
        check_cudnn_wanted(target)


def _has_value_shapes(graph: FunctionGraph) -> bool:
    """Whether a shape depends on the values of inputs, so that no program can be made before a call."""
    return any(not isinstance(node.inputs[place], Constant) for node in graph.nodes for place in node.op.value_inputs)


def _default_name() -> str:
    place = current_source()
    return f"function at {place[0].filename}:{place[0].lineno}" if place else "function"
