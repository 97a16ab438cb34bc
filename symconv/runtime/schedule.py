"""Schedule: the steps of a bound graph in order.

View ops make no step: their result is a place in their input's storage (a reshape that no strides express: in a copy of it).
An input whose strides the chosen implementation does not take is copied once.  Outputs get storages of their own; new values of
shared variables are written straight into the shared storage where nothing can still need the old value, else into a storage that
is swapped in when the whole program has succeeded.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ..codegen.elementwise import copy_kernel
from ..codegen.implementation import RefusedError
from ..codegen.kernel import AnyKernel, Operand
from ..graph import Apply, Constant, FunctionGraph, Variable
from ..ops.shape import Reshape
from ..target import Target
from .prepare import prepared_first
from .select import Choice, build_kernel, choose
from .step import Place, Step, Storage


@dataclass
class Schedule:
    """Steps in order, and the storages by kind. `swapped` are the updates committed after the run: (leaf, storage).

    `places` says where every variable of the graph lies, views included; `target` is what they were chosen for.
    """

    steps: list[Step]
    inputs: dict[Variable, Storage]
    constants: list[tuple[Storage, Constant]]
    outputs: list[Place]
    swapped: list[tuple[Variable, Place]]
    direct: list[Variable]
    places: dict[Variable, Place] = field(default_factory=dict)
    target: Target = field(default_factory=Target)


def make_schedule(graph: FunctionGraph, shared: Sequence[Variable], target: Target, reference: bool = False) -> Schedule:
    """The schedule of a bound graph; `shared` are those of its leaves that are state."""
    builder = _Builder(graph, frozenset(shared), target, reference)
    for node in graph.nodes:
        builder.add(node)
    outputs = [builder.output(position, variable) for position, variable in enumerate(graph.outputs)]
    for position, place in enumerate(outputs):
        place.storage.number = position  # as the user counts them, not in the order in which they were made
    new_values = [(leaf, builder.new_value(new)) for leaf, new in graph.updates if new is not leaf]
    steps = _updates_late(prepared_first(builder.steps, builder.leaves, [leaf for leaf, _ in new_values]), new_values)
    in_place = _InPlaceUpdates(steps)
    direct = {leaf: None for leaf, place in new_values if in_place.write(builder.places[leaf], place)}
    swapped = [(leaf, place) for leaf, place in new_values if leaf not in direct]
    return Schedule(steps, builder.leaves, builder.constants, outputs, swapped, list(direct), builder.places, target)


class _Builder:
    def __init__(self, graph: FunctionGraph, shared: frozenset[Variable], target: Target, reference: bool) -> None:
        self.target, self.reference, self.shared = target, reference, shared
        self.steps: list[Step] = []
        self.places: dict[Variable, Place] = {}
        self.leaves: dict[Variable, Storage] = {}
        self.constants: list[tuple[Storage, Constant]] = []
        self.copies: dict[Variable, Place] = {}
        self.computed: set[Variable] = set()  # results of steps; the others are views, of outputs too
        updated = {leaf for leaf, new in graph.updates if new is not leaf}
        self.still: set[Storage] = set()  # constants, state that is not updated, and what is made of these alone
        self.output_numbers = {variable: number for number, variable in reversed(list(enumerate(graph.outputs)))}
        self.counts = dict.fromkeys(("input", "shared", "constant", "output", "update", "temporary"), 0)
        for leaf in graph.leaves:
            storage = self.place(leaf).storage
            if storage.kind != "input" and leaf not in updated:
                self.still.add(storage)

    def new_storage(self, kind: str, nbytes: int) -> Storage:
        """Another storage of a kind."""
        storage = Storage(kind, self.counts[kind], nbytes)
        self.counts[kind] += 1
        return storage

    def place(self, variable: Variable) -> Place:
        """Where a variable is; leaves get their storage when first met."""
        if variable not in self.places:
            operand = Operand.contiguous(variable.dtype, variable.type.static_shape)
            kind = ("constant" if isinstance(variable, Constant) else "shared" if variable in self.shared else "input")
            storage = self.new_storage(kind, operand.nbytes)
            if isinstance(variable, Constant):
                self.constants.append((storage, variable))
            else:
                self.leaves[variable] = storage
            self.places[variable] = Place(storage, 0, operand)
        return self.places[variable]

    def add(self, node: Apply) -> None:
        """Schedule one node: a view, or a step (after the copies it needs)."""
        inputs = tuple(self.place(variable) for variable in node.inputs)
        if self._view(node, inputs):
            return
        outputs = tuple(Operand.contiguous(output.dtype, output.type.static_shape) for output in node.outputs)
        still = frozenset([position for position, place in enumerate(inputs) if place.storage in self.still])
        choice, kernel = self._chosen(node, tuple(place.operand for place in inputs), outputs, still)
        reads = tuple(self.contiguous(variable) if position in choice.copied else place
                      for position, (variable, place) in enumerate(zip(node.inputs, inputs, strict=True)))
        writes = tuple(self._result(variable, operand) for variable, operand in zip(node.outputs, outputs, strict=True))
        if choice.implementation is not None:
            reads = self._prepare(choice, reads)
        workspace = self._workspace(kernel)
        self.steps.append(Step(node, choice, kernel, reads, writes, workspace))
        if len(still) == len(inputs) and not self.steps[-1].can_fail:
            self.still.update(place.storage for place in writes)

    def _chosen(self, node: Apply, inputs: tuple[Operand, ...], outputs: tuple[Operand, ...],
                still: frozenset[int]) -> tuple[Choice, AnyKernel | None]:
        """The implementation and its kernel; where what was chosen cannot be built after all, the next best."""
        refused: dict[str, str] = {}
        while True:
            choice = choose(node.op, inputs, outputs, self.target, self.reference, still, refused)
            if choice.implementation is None:
                return choice, None
            try:
                return choice, build_kernel(choice.implementation, choice.problem, self.target)
            except RefusedError as error:
                refused[choice.name] = " ".join(str(error).split())

    def _prepare(self, choice: Choice, reads: tuple[Place, ...]) -> tuple[Place, ...]:
        """The inputs, those that the implementation wants in another form by steps of their own."""
        if choice.implementation is None:
            return reads
        places = list(reads)
        for preparation in choice.implementation.prepare(choice.problem, self.target):
            made = Place(self.new_storage("temporary", preparation.result.nbytes), 0, preparation.result)
            self.steps.append(Step(None, None, preparation.kernel, (reads[preparation.position],), (made,),
                                   self._workspace(preparation.kernel)))
            places[preparation.position] = made
        return tuple(places)

    def _workspace(self, kernel: AnyKernel | None) -> Storage | None:
        return self.new_storage("temporary", kernel.workspace_bytes) if kernel and kernel.workspace_bytes else None

    def _view(self, node: Apply, inputs: tuple[Place, ...]) -> bool:
        if not inputs or len(node.outputs) != 1:
            return False
        constants = {position: variable.data for position, variable in enumerate(node.inputs) if isinstance(variable, Constant)}
        (output,), source = node.outputs, inputs[0]

        def view(place: Place) -> tuple[int, tuple[int, ...]] | None:
            return node.op.view(place.operand.shape, place.operand.strides, output.type.static_shape, constants)

        found = view(source)
        if found is None and isinstance(node.op, Reshape) and not self.reference:
            source = self.contiguous(node.inputs[0])
            found = view(source)
        if found is None:
            return False
        offset, strides = found
        self.places[output] = Place(source.storage, source.offset + offset,
                                    Operand(output.dtype, output.type.static_shape, tuple(strides)))
        return True

    def _result(self, variable: Variable, operand: Operand) -> Place:
        kind = "output" if variable in self.output_numbers else "temporary"
        self.computed.add(variable)
        self.places[variable] = Place(self.new_storage(kind, operand.nbytes), 0, operand)
        return self.places[variable]

    def contiguous(self, variable: Variable) -> Place:
        """A row-major copy of a variable, made once."""
        if variable not in self.copies:
            self.copies[variable] = self.copy(self.place(variable), "temporary")
        return self.copies[variable]

    def copy(self, source: Place, kind: str) -> Place:
        """A step that copies a place into a new storage."""
        operand = Operand.contiguous(source.operand.dtype, source.operand.shape)
        target = Place(self.new_storage(kind, operand.nbytes), 0, operand)
        kernel = self._copy_kernel(source.operand) if self.target.has_compiler and not self.reference else None
        self.steps.append(Step(None, None, kernel, (source,), (target,)))
        return target

    def _copy_kernel(self, operand: Operand) -> AnyKernel | None:
        if self.target.device == "cpu":
            return copy_kernel(operand, self.target)
        from ..codegen.cuda.elementwise import copy_plan

        return copy_plan(operand)

    def output(self, position: int, variable: Variable) -> Place:
        """The storage of an output: its own, copied to where the value lies elsewhere."""
        place = self.place(variable)
        own = variable in self.computed and place.storage.kind == "output" and self.output_numbers[variable] == position
        return place if own else self.copy(place, "output")

    def new_value(self, new: Variable) -> Place:
        """Where an update's new value is written: a storage that nothing else keeps."""
        place = self.place(new)
        if place.storage.kind == "temporary" and place.is_whole and new.apply is not None:
            place.storage.kind = "update"
            place.storage.number = self.counts["update"]
            self.counts["update"] += 1
            return place
        return self.copy(place, "update")


def _updates_late(steps: list[Step], new_values: list[tuple[Variable, Place]]) -> list[Step]:
    """Steps that only make new values of state go last, so that they can be written in place; others keep their order."""
    made = {id(place.storage) for _, place in new_values}
    read = {id(place.storage) for step in steps for place in step.reads}
    late = [step for step in steps
            if step.writes and all(id(place.storage) in made and id(place.storage) not in read for place in step.writes)
            and not step.can_fail]
    moved = {id(step) for step in late}
    return [step for step in steps if id(step) not in moved] + late


class _InPlaceUpdates:
    """Lets new values be written straight into their shared storages, where that is safe."""

    def __init__(self, steps: list[Step]) -> None:
        self.steps = steps
        self.writer: dict[Storage, int] = {}
        self.last_touch: dict[Storage, int] = {}
        self.last_failing = -1
        for position, step in enumerate(steps):
            for place in step.writes:
                self.writer.setdefault(place.storage, position)
            for place in (*step.reads, *step.writes):
                self.last_touch[place.storage] = position
            if step.can_fail:
                self.last_failing = position

    def write(self, old: Place, new: Place) -> bool:
        """Let a new value be written into the shared storage of the old one if that is safe; whether it was.

        Safe: same dtype and shape; no step from the writing one on can fail, none after it reads the old value (a shared
        storage is the home of no other storage before this); and the writing step itself reads the old value only if its
        kernel allows that pair to share memory.
        """
        if old.operand != new.operand:
            return False
        writer = self.writer[new.storage]
        if self.last_failing >= writer or self.last_touch.get(old.storage, -1) > writer:
            return False
        step = self.steps[writer]
        if any(place.storage.home is old.storage for place in step.writes):
            return False
        output = next(number for number, place in enumerate(step.writes) if place.storage is new.storage)
        for position, place in enumerate(step.reads):
            if place.storage.home is old.storage:
                allowed = step.kernel is not None and (output, position) in step.kernel.in_place
                if not (allowed and place.is_whole):
                    return False
        new.storage.alias = old.storage
        step.in_place.append(output)
        return True
