"""What a program is made of: storages, places in them, and steps."""
from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from .. import dtypes
from ..codegen.kernel import AnyKernel, Operand
from ..graph import Apply
from .select import Choice

KINDS = ("input", "shared", "constant", "output", "update", "kept", "temporary")


@dataclass(eq=False, slots=True)
class Storage:
    """A piece of memory. `kind` says who provides it; `number` counts within the kind.

    A kept storage lies at `offset` in memory that outlives calls: it holds what only changes when state does.  A temporary
    lies at `offset` in the program's arena once memory is planned.  `alias` is another storage whose memory it is (in
    place); `home` follows it.
    """

    kind: str
    number: int
    nbytes: int
    alias: Storage | None = None
    offset: int = 0

    @property
    def home(self) -> Storage:
        """The storage whose memory this really is."""
        storage = self
        while storage.alias is not None:
            storage = storage.alias
        return storage

    def __str__(self) -> str:
        return f"{self.kind}{self.number}"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a variable's elements are: a storage, the offset of the first element, and shape and strides."""

    storage: Storage
    offset: int
    operand: Operand

    @property
    def offset_bytes(self) -> int:
        """Bytes from the start of the storage to the first element."""
        return self.offset * dtypes.itemsize(self.operand.dtype)

    @property
    def is_whole(self) -> bool:
        """Whether it is all of its storage, in row-major order."""
        return self.offset == 0 and self.operand.is_contiguous and self.operand.nbytes == self.storage.nbytes


@dataclass(eq=False, slots=True)
class Step:
    """One kernel call (or, where `kernel` is None, one NumPy reference).

    `is_prepared`: it reads nothing but constants and state that the function does not update, so it runs only when that state
    has changed; such steps stand first in a program.
    """

    node: Apply | None
    choice: Choice | None
    kernel: AnyKernel | None
    reads: tuple[Place, ...]
    writes: tuple[Place, ...]
    workspace: Storage | None = None
    in_place: list[int] = field(default_factory=list)
    is_prepared: bool = False

    @property
    def can_fail(self) -> bool:
        """Whether it can end in an error at run time."""
        return self.kernel is None or bool(self.kernel.errors)

    @property
    def storages(self) -> Iterable[Storage]:
        """Every storage it touches."""
        for place in (*self.reads, *self.writes):
            yield place.storage
        if self.workspace is not None:
            yield self.workspace

    @property
    def name(self) -> str:
        """The kernel's name, or the op's with a mark that it is the reference."""
        return self.kernel.name if self.kernel is not None else f"reference:{self.node.op if self.node else 'copy'}"
