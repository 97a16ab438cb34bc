"""Every setting of symconv in one typed table, each with its environment variable.

Read and set as attributes (`config.floatX = "float64"`, `config.dnn.enabled = True`), or for a while:

>>> with config.change(floatX="float64"):
...     config.floatX
'float64'

The environment variable of a setting is `SYMCONV_` and its name in capitals with `.` as `_`: `SYMCONV_CACHE_DIR`,
`SYMCONV_DNN_ENABLED`, `SYMCONV_DEBUG`.  It is read when the setting is first asked for.
"""
from __future__ import annotations

import os
import textwrap
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from .errors import ArgumentError, explain_error

MOST_THREADS = 256  # of a CPU kernel
VERSION = "0.1.0"  # of symconv; what is kept on disk (measurements) holds for one version


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting: dotted name, default, what it means, and how a value is read from text and checked."""

    name: str
    default: Any
    meaning: str
    parse: Callable[[Any], Any]

    @property
    def variable(self) -> str:
        """The environment variable that sets it."""
        return "SYMCONV_" + self.name.upper().replace(".", "_")


def _one_of(*choices: Any) -> Callable[[Any], Any]:
    texts = {str(choice).lower(): choice for choice in choices}

    def parse(value: Any) -> Any:
        if str(value).lower() in texts:
            return texts[str(value).lower()]
        raise ValueError(f"one of {', '.join(map(repr, choices))}")

    return parse


def _boolean(value: Any) -> bool:
    text = str(value).lower()
    if text in ("1", "true", "yes", "on"):
        return True
    if text in ("0", "false", "no", "off", ""):
        return False
    raise ValueError("True or False")


def _count(value: Any) -> int:
    number = int(value)
    if number < 0:
        raise ValueError("a whole number from 0")
    return number


def _threads(value: Any) -> int:
    number = int(value)
    if not 0 <= number <= MOST_THREADS:
        raise ValueError(f"a whole number from 0 to {MOST_THREADS}")
    return number


SETTINGS = (
    Setting("floatX", "float32", "dtype of tensor variables made without one", _one_of("float16", "float32", "float64")),
    Setting("device", "cpu", "device of functions compiled without one", str),
    Setting("mode", "fast_run", "mode of functions compiled without one", str),
    Setting("threads", 0, "threads of a CPU kernel; 0: OMP_NUM_THREADS, else every processor that this process may use",
            _threads),
    Setting("cache_dir", "", "folder of compiled kernels and measurements; empty: the user's cache folder", str),
    Setting("debug", 0, "what compiling logs to standard error: 1 stages, 2 + rewrites, 3 + selection and memory, 4 + sources",
            _count),
    Setting("keep_sources", False, "keep the generated sources beside the compiled kernels", _boolean),
    Setting("profile", False, "note the time of every step of functions compiled without profile=", _boolean),
    Setting("exception_verbosity", "low", "errors at run time: low 40 lines at most, high with the expression around the node",
            _one_of("low", "high")),
    Setting("nan_guard_limit", 1e10, 'what counts as a huge value in mode="nan_guard"', float),
    Setting("verify", False, "check every graph after every rewrite sweep", _boolean),
    Setting("fuel", -1, "stop rewriting after this many applications in all (to find a wrong one); -1: no limit", int),
    Setting("fuel_report", "", "file that gets the number of applications and the last one; for python -m symconv bisect", str),
    Setting("on_unused_input", "raise", "what compile does about an input that nothing uses",
            _one_of("raise", "warn", "ignore")),
    Setting("deterministic", False, "the same inputs always give the same bits", _boolean),
    Setting("precision", "float32", "what float32 products may be computed in", _one_of("float32", "tf32")),
    Setting("compiler", "", "the C compiler; empty: $CC, cc, gcc, clang, python -m ziglang cc", str),
    Setting("selection", "heuristic",
            "how kernels are chosen: heuristic by expected times, measure times them once and keeps the answer on disk",
            _one_of("heuristic", "measure")),
    Setting("emulator.checked", True, 'whether device="emulator" watches every access to memory (slow), or only runs', _boolean),
    Setting("assert_no_host_op", False, "on a GPU, an operation that neither a kernel nor its reference runs there is an error "
            "instead of a run on the host, which a warning tells", _boolean),
    Setting("dnn.enabled", "auto", "cuDNN for convolutions on a GPU: auto where it is expected to be fastest, False never, True "
            "always (what it cannot run is an error)", _one_of("auto", True, False)),
    Setting("workspace_bytes", 4 << 30, "most bytes of workspace that a step on a GPU may take; less where memory is short",
            _count),
    Setting("dnn.workspace_bytes", 1 << 30, "most bytes of workspace that a plan of cuDNN may take", _count),
    Setting("conv.implementation", "", "force one convolution implementation by its name; empty: symconv chooses", str),
    Setting("layout", "auto", "chains of convolutions on blocks of channels: where that is faster, never, or wherever it can be",
            _one_of("auto", "off", "always")),
    Setting("conv.fft", "auto", "convolutions with large kernels by Fourier transforms: far fewer products",
            _one_of("auto", "off")),
    Setting("conv.winograd", "auto", "3x3 convolutions in Winograd's form: fewer products, errors up to 4 times a direct sum's",
            _one_of("auto", "off")),
)
_TABLE = {setting.name: setting for setting in SETTINGS}
_WIDEST_COLUMN = 30    # of the table of settings: a longer value is followed by the rest on the next line
_MEANING_WIDTH = 78
_GROUPS = {name.split(".")[0] for name in _TABLE if "." in name}


class Config:
    """The settings as attributes; a dotted group (`config.dnn`) is a Config of its own."""

    def __init__(self, prefix: str = "", values: dict[str, Any] | None = None) -> None:
        object.__setattr__(self, "_prefix", prefix)
        object.__setattr__(self, "_values", {} if values is None else values)
        object.__setattr__(self, "_lock", threading.RLock())

    def __getattr__(self, name: str) -> Any:
        full = self._prefix + name
        if full in self._values:
            return self._values[full]
        if not self._prefix and name in _GROUPS:
            return Config(name + ".", self._values)
        if full not in _TABLE:
            raise AttributeError(_unknown(full))
        setting = _TABLE[full]
        text = os.environ.get(setting.variable)
        self._values[full] = setting.default if text is None else _checked(setting, text)
        return self._values[full]

    def value(self, name: str) -> Any:
        """A setting by its full name: quicker than the attribute, for what every call asks."""
        values = self._values
        if name in values:
            return values[name]
        group, _, rest = name.rpartition(".")
        return getattr(getattr(self, group) if group else self, rest)

    def __setattr__(self, name: str, value: Any) -> None:
        full = self._prefix + name
        if full not in _TABLE:
            raise AttributeError(_unknown(full))
        self._values[full] = _checked(_TABLE[full], value)

    def __delattr__(self, name: str) -> None:
        """Back to what the environment says, or the default."""
        full = self._prefix + name
        if full not in _TABLE:
            raise AttributeError(_unknown(full))
        self._values.pop(full, None)

    def __dir__(self) -> list[str]:
        return [*sorted({name.split(".")[0] for name in _TABLE}), "change", "describe"]

    @contextmanager
    def change(self, **settings: Any) -> Iterator[None]:
        """Change settings inside a `with` block; a dotted name is written with two underscores (`dnn__enabled=False`)."""
        names = {name: self._prefix + name.replace("__", ".") for name in settings}
        for full in names.values():
            if full not in _TABLE:
                raise AttributeError(_unknown(full))
        new = {full: _checked(_TABLE[full], settings[name]) for name, full in names.items()}
        old = {full: self._values[full] for full in new if full in self._values}
        self._values.update(new)
        try:
            yield
        finally:
            for full in new:
                self._values.pop(full, None)
            self._values.update(old)

    def describe(self) -> str:
        """A table of every setting: value, environment variable, meaning. A long value has a line of its own."""
        names, values = [setting.name for setting in SETTINGS], [repr(self.value(setting.name)) for setting in SETTINGS]
        variables = [setting.variable for setting in SETTINGS]
        widths = [min(max(map(len, column)), _WIDEST_COLUMN) for column in (names, values, variables)]
        start = " " * (sum(widths) + 3)
        rows = []
        for name, value, variable, setting in zip(names, values, variables, SETTINGS, strict=True):
            cells = (text.ljust(width) for text, width in zip((name, value, variable), widths, strict=True))
            meaning = textwrap.wrap(setting.meaning, _MEANING_WIDTH)
            first = " ".join(cells)
            rows += [f"{first} {meaning[0]}"] if len(first) < len(start) else [first.rstrip(), start + meaning[0]]
            rows += [start + line for line in meaning[1:]]
        return "\n".join(rows)


def _unknown(name: str) -> str:
    return explain_error(f"symconv has no setting {name!r}", do=f"use one of {', '.join(sorted(_TABLE))}")


def _checked(setting: Setting, value: Any) -> Any:
    try:
        return setting.parse(value)
    except (ValueError, TypeError) as error:
        raise ArgumentError(explain_error(f"the setting {setting.name} does not take this value", repr(value),
                                          f"give {error}")) from None


config = Config()
