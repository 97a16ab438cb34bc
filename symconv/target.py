"""What a device can do, as far as rewrites and code generation ask; `runtime/compile.py` fills it in."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from . import dtypes


def _never(*_: Any) -> str | None:
    return "this device fuses nothing"


def _no_estimate(*_: Any) -> float | str:
    return "this device estimates nothing"


@dataclass(frozen=True, slots=True)
class Rates:
    """What some number of threads do in a second, at most.

    `fmas` are vectors of the device's full width multiplied and added (two a cycle at 3 GHz by default); the others are bytes
    read and written by a copy between arrays in main memory and in the third and second cache.
    """

    fmas: float = 6.0e9
    memory: float = 10.0e9
    l3: float = 30.0e9
    l2: float = 60.0e9

    def scaled(self, factor: float) -> Rates:
        """All rates times a factor."""
        return Rates(self.fmas * factor, self.memory * factor, self.l3 * factor, self.l2 * factor)


@dataclass(frozen=True, slots=True)
class Ceilings:
    """What a machine can do at most: the rates of one thread and of all `threads`, and the sizes of two caches.

    `reason` is empty where they were measured, else it says why these are the stated defaults.
    """

    one: Rates = Rates()
    team: Rates = Rates()
    threads: int = 1
    l2_bytes: int = 512 << 10
    l3_bytes: int = 8 << 20
    reason: str = "not measured for this target"

    def rates(self, threads: int) -> Rates:
        """The rates of a team: on a straight line from one thread to all; where only one was measured, so many times its.

        >>> Ceilings(Rates(6e9), Rates(10e9), threads=3).rates(2).fmas
        8000000000.0
        """
        threads = max(threads, 1)
        if self.threads <= 1:
            return self.one.scaled(threads)
        part = min((threads - 1) / (self.threads - 1), 1.0)
        return Rates(*(low + part * (high - low) for low, high in (
            (self.one.fmas, self.team.fmas), (self.one.memory, self.team.memory), (self.one.l3, self.team.l3),
            (self.one.l2, self.team.l2))))


DEFAULT_CEILINGS = Ceilings()


def _default_ceilings() -> Ceilings:
    return DEFAULT_CEILINGS


@dataclass(frozen=True, slots=True)
class Target:
    """A device as the compiler sees it.

    `has_compiler` is False where only the NumPy references can run.  The two `refuse_…` functions answer None where the
    device can run the fused form, else the reason why not: `refuse_epilogue(conv, input_types, result_type, epilogue)` for
    a convolution without its epilogue, and `refuse_elementwise(program)`.  `estimate(op, input_types, output_types)` gives the
    expected seconds of the fastest kernel, or why none runs the op.  `arch` is a GPU's compute capability without its dot (90), 0
    for the CPU; `gpu` its figures as cuDNN's JSON (empty: not known); `place` the device of this machine that it is (`cuda:0`;
    empty: none, it is only compiled for).  `find_ceilings` gives the machine's ceilings when an estimate first asks for them (which
    may measure them); they change no kernel, so two targets that differ in them are equal.  `vector_registers` is how many vectors
    the processor holds at once; 0: what one with such vectors has at least.
    """

    device: str = "cpu"
    has_compiler: bool = True
    vector_bytes: int = 32
    threads: int = 1
    arch: int = 0
    gpu: str = ""
    place: str = ""
    vector_registers: int = 0
    refuse_epilogue: Callable[..., str | None] = field(default=_never, compare=False)
    refuse_elementwise: Callable[..., str | None] = field(default=_never, compare=False)
    estimate: Callable[..., float | str] = field(default=_no_estimate, compare=False)
    find_ceilings: Callable[[], Ceilings] = field(default=_default_ceilings, compare=False)

    @property
    def registers(self) -> int:
        """How many vectors the processor holds at once.

        >>> Target().registers, Target(vector_bytes=64).registers, Target(vector_bytes=16, vector_registers=32).registers
        (16, 32, 32)
        """
        return self.vector_registers or (32 if self.vector_bytes >= 64 else 16)

    @property
    def ceilings(self) -> Ceilings:
        """What the machine can do at most."""
        return self.find_ceilings()

    def peak_flops(self, dtype: str, threads: int | None = None) -> float:
        """Floating-point operations a second at most, of all threads or of so many.

        >>> Target(vector_bytes=32, threads=2).peak_flops("float32") / 1e9
        192.0
        """
        lanes = self.vector_bytes / dtypes.itemsize(dtype)
        return 2 * lanes * self.ceilings.rates(self.threads if threads is None else threads).fmas

    def copy_seconds(self, nbytes: float, threads: int | None = None, working_set: float | None = None) -> float:
        """Seconds to read and write `nbytes` in all, from main memory or from the cache that holds `working_set` bytes."""
        team = max(self.threads if threads is None else threads, 1)
        ceilings = self.ceilings
        rates = ceilings.rates(team)
        if working_set is None or working_set > ceilings.l3_bytes:
            return nbytes / rates.memory
        return nbytes / (rates.l2 if working_set <= ceilings.l2_bytes * team else rates.l3)
