"""`check_memory`: every step of a function's programs finds in memory what it is meant to read.

The steps are gone through in order with a table of who wrote which bytes last.  A write takes its bytes away from every other
value; a read must find the value that it wants whole.  So a wrong offset in the arena, an in-place write over a value that is
still needed, a workspace over a living value, and an update that reaches a shared variable too early are all found, by no
reasoning of the planner's.
"""
from __future__ import annotations

from dataclasses import dataclass

from ..errors import FunctionError, InternalError, explain_error
from .function import Function
from .planned import PlannedProgram
from .step import Place, Step, Storage

Region = tuple[str, int]  # a memory of its own: "arena", "kept", or a kind of storage with its number


@dataclass(frozen=True, slots=True)
class MemoryCheck:
    """What was looked at: programs, steps, values (pieces of memory that one run writes), bytes of the largest arena."""

    programs: int
    steps: int
    values: int
    arena_bytes: int

    def __str__(self) -> str:
        from ..printing.names import plural

        return (f"{plural(self.programs, 'program')}, {plural(self.steps, 'step')}, {plural(self.values, 'value')}, "
                f"an arena of {self.arena_bytes} bytes: every step reads what it is meant to")


def check_memory(function: Function) -> MemoryCheck:
    """Check the memory of every program that a compiled function has made so far (one for each set of input shapes).

    Raises:
        FunctionError: there is no program yet: call the function once, or `function.prepare(shapes)`.
        InternalError: a step would read what another has overwritten; it names both steps and the value.

    >>> import symconv as sc, symconv.tensor as T
    >>> x = T.vector("x", shape=(4,))
    >>> print(sc.check_memory(sc.compile([x], (x + 1).sum() * x)))
    1 program, 2 steps, 2 values, an arena of 64 bytes: every step reads what it is meant to
    """
    programs = [kept.program for kept in function.kept]
    if not programs:
        raise FunctionError(explain_error(f"{function.name} has no program whose memory could be checked",
                                          do="call it once, or function.prepare(shapes)"))
    counts = [_Ledger(program).check() for program in programs]
    return MemoryCheck(len(programs), sum(len(each.steps) for each in programs), sum(counts),
                       max(each.memory.arena_bytes for each in programs))


class _Ledger:
    """Who wrote which bytes last, while the steps of a program are gone through."""

    def __init__(self, program: PlannedProgram) -> None:
        self.program = program
        self.living: dict[Region, dict[Storage, tuple[int, int, int]]] = {}  # storage: (first byte, end, the step that wrote it)
        self.lost: dict[Storage, int] = {}  # storage: the step that overwrote it
        for storage in (*program.schedule.inputs.values(), *(storage for storage, _ in program.schedule.constants)):
            self._put(storage, storage.nbytes, -1)

    def check(self) -> int:
        """Go through one run of all steps, and a second one without those that are prepared; how many values one run writes."""
        steps = list(enumerate(self.program.steps))
        for position, step in (*steps, *steps[self.program.n_prepared:]):
            for place in step.reads:
                self._read(position, step, place)
            if step.workspace is not None and step.kernel is not None:
                self._put(step.workspace, step.kernel.workspace_bytes, position)
            self._write(position, step)
            if position == len(steps) - 1:
                self._check_end(position, step)
                self._begin_again()
        if not steps:
            self._check_end(-1, None)
        return sum(len(step.writes) for step in self.program.steps)

    def _read(self, position: int, step: Step | None, place: Place) -> None:
        storage = place.storage
        if place.operand.nbytes == 0 or storage in self.living.get(_region(storage), {}):
            return
        over = self.lost.get(storage)
        how = "nothing has written it" if over is None else f"step {over} ({self.program.steps[over].name}) has written over it"
        name = "the end of the call" if step is None else f"step {position} ({step.name})"
        raise InternalError(explain_error(f"{name} would read {storage}, but {how}",
                                          f"{place.operand.dtype}{list(place.operand.shape)} in {_region(storage)[0]}",
                                          "this is a bug of symconv: please report it with the printed program",
                                          () if step is None or step.node is None else step.node.source))

    def _write(self, position: int, step: Step) -> None:
        """Results overwrite what else lies there; only an input that the kernel may share with a result is read meanwhile."""
        reading = [place for place in step.reads if place.operand.nbytes]
        for number, place in enumerate(step.writes):
            shared = {step.reads[source].storage.home for output, source in (step.kernel.in_place if step.kernel else ())
                      if output == number} if number in step.in_place else set()
            self._put(place.storage, place.storage.nbytes, position)
            for read in reading:
                if read.storage not in self.living.get(_region(read.storage), {}) and read.storage.home not in shared:
                    raise InternalError(f"step {position} ({step.name}) writes {place.storage} over its own input {read.storage}")

    def _put(self, storage: Storage, nbytes: int, position: int) -> None:
        living = self.living.setdefault(_region(storage), {})
        start = storage.home.offset if storage.home.kind in ("temporary", "kept") else 0
        if nbytes == 0:
            living[storage] = (start, start, position)
            return
        for other, (first, end, _) in list(living.items()):
            if other is not storage and first < start + nbytes and start < end:
                del living[other]
                self.lost[other] = position
        living[storage] = (start, start + nbytes, position)

    def _check_end(self, position: int, step: Step | None) -> None:
        """Results, new values and constants must all be there when the call ends."""
        program = self.program
        for place in program.result_places():
            self._read(position, None, place)
        for storage, _ in program.schedule.constants:
            if storage not in self.living.get(_region(storage), {}):
                raise InternalError(f"step {self.lost[storage]} writes over {storage}")

    def _begin_again(self) -> None:
        """The next call finds its inputs and state; what is kept stays as it is, temporaries and results are gone."""
        for region, living in self.living.items():
            if region[0] == "arena" or region[0] in ("output", "update"):
                living.clear()
        for storage in self.program.schedule.inputs.values():
            self.living[_region(storage)] = {storage: (0, storage.nbytes, -1)}


def _region(storage: Storage) -> Region:
    home = storage.home
    if home.kind in ("temporary", "kept"):
        return ("arena" if home.kind == "temporary" else "kept", 0)
    return home.kind, home.number
