"""What was measured on this machine, kept in the kernel cache's folder: a JSON file for each thing, with all that it holds for.

A note is written elsewhere in the folder and moved into place; it names what it was made for (machine, version, problem) and has
a digest of its values.  A file that is cut short, overwritten or made for something else is not believed: that is logged, and
the caller makes it anew.
"""
from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from ..config import VERSION, config
from .cache import KernelCache, current_cache
from .compiler import find_compiler, processor
from .threads import default_threads

log = logging.getLogger("symconv.codegen")
Facts = Mapping[str, str]
CEILINGS, MEASURED = NOTES = ("ceilings", "measured")
"""The kinds of notes, which are the names of their folders."""


def machine_facts() -> dict[str, str]:
    """What measurements depend on: the processor, its cores and those for us, the compiler with its flags, symconv."""
    return dict(_machine_facts(config.compiler, os.environ.get("CC", ""), os.environ.get("PATH", ""), config.cache_dir,
                               default_threads()))


@lru_cache(maxsize=32)
def _machine_facts(*_: Any) -> tuple[tuple[str, str], ...]:
    compiler = find_compiler()
    features = json.loads(processor())[2]
    return (("processor", features.get("model name", "unknown")), ("features", _digest(processor())[:16]),
            ("cores", f"{os.cpu_count()}, {default_threads()} for us"),
            ("compiler", compiler.version if compiler is not None else "none"),
            ("flags", " ".join(compiler.flags) if compiler is not None else ""), ("symconv", VERSION))


def read_note(kind: str, facts: Facts) -> Any | None:
    """The values noted for these facts; None where there are none that can be believed."""
    cache, name = current_cache(), note_name(facts)
    for folder in dict.fromkeys((cache.folder, cache.writable)):
        path = folder / kind / name
        try:
            text = path.read_text(encoding="utf-8")
        except FileNotFoundError:
            continue
        except (OSError, UnicodeDecodeError) as error:
            _warn(path, str(error))
            continue
        values, wrong = _checked(text, facts)
        if not wrong:
            return values
        _warn(path, wrong)
    return None


def write_note(kind: str, facts: Facts, values: Any) -> Path:
    """Keep values for these facts; OSError where nothing can be written."""
    cache: KernelCache = current_cache()
    text = json.dumps({"facts": dict(facts), "values": values, "digest": _digest(json.dumps(values))}, indent=1)
    return cache.keep(kind, note_name(facts), text + "\n")


def note_name(facts: Facts) -> str:
    """The name of the file that holds what was noted for these facts."""
    return _digest(json.dumps(sorted(facts.items())))[:40] + ".json"


def is_whole_note(path: Path) -> bool:
    """Whether a file is a note whose values are as they were written."""
    try:
        note = json.loads(path.read_text(encoding="utf-8"))
        return bool(note["digest"] == _digest(json.dumps(note["values"])) and path.name == note_name(note["facts"]))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return False


def _checked(text: str, facts: Facts) -> tuple[Any, str]:
    """The values of a note's text, or what is wrong with it."""
    try:
        note = json.loads(text)
        found, values, digest = note["facts"], note["values"], note["digest"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        return None, f"it is no note ({type(error).__name__}: {error})"
    if found != dict(facts):
        return None, "it was made for something else"
    if digest != _digest(json.dumps(values)):
        return None, "its values were changed"
    return values, ""


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _warn(path: Path, wrong: str) -> None:
    log.warning("the note %s is not used: %s; it is made again", path, wrong)
