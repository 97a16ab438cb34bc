"""Modes: how much is rewritten and what the steps run on."""
from __future__ import annotations

from dataclasses import dataclass, replace

from ..config import config
from ..errors import ArgumentError, explain_error
from ..rewrites.pipeline import FAST_COMPILE


@dataclass(frozen=True, slots=True)
class Mode:
    """How a function is compiled.

    Args:
        name: for printing.
        include: names of the rewrite rules or phases to run; None: all of them.
        exclude: names of rules or phases not to run.
        reference: run every step as its NumPy reference instead of a generated kernel.
        check: what every call watches, slowly: "debug" compares every rewrite's two sides and every kernel with its reference,
            and guards memory; "nan_guard" stops at the first NaN, infinity or value beyond `config.nan_guard_limit`.
    """

    name: str
    include: tuple[str, ...] | None = None
    exclude: tuple[str, ...] = ()
    reference: bool = False
    check: str = ""

    def including(self, *names: str) -> Mode:
        """The mode with only these rules or phases added to those included before."""
        return replace(self, include=(self.include or ()) + names)

    def excluding(self, *names: str) -> Mode:
        """The mode without these rules or phases."""
        return replace(self, exclude=self.exclude + names)


MODES = {mode.name: mode for mode in (
    Mode("fast_run"),
    Mode("fast_compile", include=FAST_COMPILE),
    Mode("reference", include=(), reference=True),
    Mode("debug", check="debug"),
    Mode("nan_guard", check="nan_guard"),
)}
"""fast_run: everything; fast_compile: only what makes the graph smaller; reference: nothing rewritten, NumPy throughout; debug and
nan_guard: as fast_run, every call watched."""


def find_mode(mode: Mode | str | None) -> Mode:
    """The mode of a name; that of the settings for None."""
    if isinstance(mode, Mode):
        return mode
    name = config.mode if mode is None else mode
    found = MODES.get(str(name).lower())
    if found is None:
        raise ArgumentError(explain_error("there is no such mode", repr(name),
                                          f"use one of {', '.join(MODES)}, or a symconv.Mode"))
    return found
