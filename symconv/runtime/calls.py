"""One call of a program: its leaves are bound, it runs, the new state is put in place, the results are given.

State changes as a whole.  Kernels write it in place in one call of C code, which notes on the host that it is done
(`Program.has_finished`, `DeviceProgram.has_committed`); `store` then puts the other new values beside it.  The user's interrupt
(KeyboardInterrupt) can arrive between any two instructions of Python's: `carry_out` calls `store` twice, so that one of the two
comes behind it, and either does nothing where the run did not come so far or the other has done all.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from .checked import CheckedRun
from .container import note_written_in_place
from .program import Program
from .state_groups import UsedState

if TYPE_CHECKING:
    from ..graph import Variable
    from .kept import Kept

Array = np.ndarray[Any, Any]


class Call(Protocol):
    """A program with everything that one call needs. `run`, `run_profiled` or `run_checked` is called once."""

    kept: Kept

    def run(self, prepare: bool) -> None:
        """Run; `prepare`: the steps too that depend on resting state alone."""
        ...

    def run_profiled(self, prepare: bool, seconds: Array, waits: Array) -> None:
        """The same; `seconds` gets the time of each step, `waits` what of it was spent waiting for a device."""
        ...

    def run_checked(self, check: str, values: dict[Variable, Array]) -> None:
        """A run that watches itself (`Mode.check`) on `values` of the program's leaves. If it raises, state is as it was."""
        ...

    def store(self) -> None:
        """Put the new state in place if the run has come so far; once."""
        ...

    def results(self) -> list[Any]:
        """The outputs, after the run."""
        ...


def carry_out(call: Call, run: Any) -> list[Any]:
    """Run, and put the new state in place: all of it, or nothing where the run did not come so far."""
    try:
        try:
            run(call)
        finally:
            call.store()
    finally:
        call.store()
    return call.results()


class CpuCall:
    """A call on the CPU, on arrays of the program's inputs; the program knows where its state lies."""

    def __init__(self, kept: Kept, program: Program, inputs: Sequence[Array], state: UsedState) -> None:
        self.kept, self.program, self.inputs, self.state = kept, program, inputs, state
        self._found = program.new_results()
        self._checked: list[bool] | None = None
        self._is_stored = False
        program.begin()

    def run(self, prepare: bool) -> None:
        """In one C call, where all steps have kernels."""
        self.program.run(self.inputs, None, prepare, self._found)

    def run_profiled(self, prepare: bool, seconds: Array, waits: Array) -> None:
        """Nothing is waited for."""
        self.program.run(self.inputs, seconds, prepare, self._found)

    def run_checked(self, check: str, values: dict[Variable, Array]) -> None:
        """Step by step, on results with guard bytes around them."""
        self._checked = []
        arrays = [*self.inputs, *(container.array for container in self.kept.state)]
        CheckedRun(self.program, arrays, check).run(self._found, self._checked)

    def store(self) -> None:
        """What was written in place has changed; what was not is replaced."""
        is_done = self.program.has_finished if self._checked is None else bool(self._checked)
        if self._is_stored or not is_done:
            return
        note_written_in_place(self.kept.direct)
        self.state.count_change()
        for container, array in zip(self.kept.swapped, self._found[self.kept.n_outputs:], strict=True):
            container.replace(array)
        self._is_stored = True

    def results(self) -> list[Array]:
        """The arrays that the kernels wrote."""
        return self._found[:self.kept.n_outputs]


