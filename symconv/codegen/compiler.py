"""Which C compiler there is, and what it takes: its version line and the flags, found out once and kept on disk."""
from __future__ import annotations

import ctypes
import hashlib
import importlib.util
import json
import logging
import os
import platform
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path

from ..config import config
from ..errors import BackendError, explain_error
from .cache import KernelCache, current_cache
from .threads import POOL_FLAGS, pool_header

# No -ffast-math: NaN, infinities and the sign of zero mean the same as in NumPy.  -fno-trapping-math only says that nobody
# reads the exception flags, which lets comparisons become selects.  Integers wrap, as NumPy's do.  zig would check for
# undefined behaviour if it were not told not to.
_BASE_FLAGS = ("-std=gnu11", "-O3", "-fPIC", "-shared", "-fwrapv", "-fno-strict-aliasing", "-fno-math-errno",
               "-fno-trapping-math", "-ffp-contract=fast", "-fno-sanitize=undefined")
_OPTIONAL_FLAGS = (("-march=native", "-mcpu=native"), ("-fopenmp", "-fopenmp-simd"))
_PROBE = """#include <stdint.h>
int sc_probe(float *x, int64_t n) {
    #pragma omp parallel for
    for (int64_t i = 0; i < n; i++) x[i] += 1.0f;
    return 0;
}
"""
_PROBE_OF_LOOPS = """int omp_get_thread_num(void);
int sc_probe_loops(float *x, int64_t n, int threads) {
    #pragma omp parallel for schedule(dynamic) num_threads(threads) if (n > 9)
    for (int64_t i = 0; i < n; i++) x[i] += omp_get_thread_num();
    #pragma omp parallel for collapse(2) schedule(static)
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) x[i * n + j] += 1.0f;
    return 0;
}
"""


@dataclass(frozen=True, slots=True)
class Compiler:
    """A C compiler: how to call it, its version line, the flags for kernels, whether it has OpenMP.

    `identity` spells all that the machine code it makes depends on, the processor included.
    """

    command: tuple[str, ...]
    version: str
    flags: tuple[str, ...]
    identity: str

    @property
    def has_openmp(self) -> bool:
        """Whether kernels can use several threads."""
        return "-fopenmp" in self.flags

    @property
    def has_pool(self) -> bool:
        """Whether kernels use symconv's own threads instead of the compiler's OpenMP library."""
        return POOL_FLAGS[0] in self.flags


def find_compiler() -> Compiler | None:
    """The compiler that the settings and this machine give, or None (see `missing_compiler_error`)."""
    return _search(config.compiler, os.environ.get("CC", ""), os.environ.get("PATH", ""), config.cache_dir)[0]


def missing_compiler_error() -> BackendError:
    """The error that says what was looked for and how to get it."""
    tried = _search(config.compiler, os.environ.get("CC", ""), os.environ.get("PATH", ""), config.cache_dir)[1]
    return BackendError(explain_error(
        "there is no C compiler, which compiled functions need", "; ".join(tried),
        "install one (apt install gcc, or python -m pip install ziglang), set SYMCONV_COMPILER to one, or evaluate "
        "with the slow NumPy references: compile(..., mode='reference')"))


@lru_cache(maxsize=32)
def _search(setting: str, variable: str, path: str, cache_dir: str) -> tuple[Compiler | None, tuple[str, ...]]:
    tried = []
    for origin, command in _candidates(setting, variable):
        executable = shutil.which(command[0], path=path)
        if executable is None:
            tried.append(f"{origin}: not found")
            continue
        compiler, problem = _examined((executable, *command[1:]), current_cache())
        if compiler is not None:
            return compiler, tuple(tried)
        tried.append(f"{origin}: {problem}")
    return None, tuple(tried)


def _candidates(setting: str, variable: str) -> Iterator[tuple[str, Sequence[str]]]:
    """Where to look, with what each place is called; a compiler that was set is the only one."""
    if setting:
        yield f"the setting compiler={setting!r}", shlex.split(setting)
        return
    if variable.strip():
        yield f"$CC={variable!r}", shlex.split(variable)
    for name in ("cc", "gcc", "clang"):
        yield name, (name,)
    spec = importlib.util.find_spec("ziglang")
    if spec is None or not spec.submodule_search_locations:
        yield "python -m ziglang cc", ("the package ziglang is not installed",)
    else:
        yield "python -m ziglang cc", (str(Path(spec.submodule_search_locations[0]) / "zig"), "cc")


def _examined(command: tuple[str, ...], cache: KernelCache) -> tuple[Compiler | None, str]:
    """The compiler behind a command, from the cache's notes or by asking it; else what is wrong with it."""
    state = Path(command[0]).stat()
    key = json.dumps([command, os.path.realpath(command[0]), state.st_mtime_ns, state.st_size, processor(),
                      _BASE_FLAGS, _OPTIONAL_FLAGS, _PROBE, POOL_FLAGS, pool_header()])
    name = hashlib.sha256(key.encode()).hexdigest()
    noted = cache.find(name, ".json")
    if noted is not None:
        fields = json.loads(noted.read_text())
        return Compiler(tuple(fields["command"]), fields["version"], tuple(fields["flags"]), fields["identity"]), ""
    compiler, problem = _asked(command, cache)
    if compiler is not None:
        with cache.scratch() as folder:
            note = folder / "compiler.json"
            note.write_text(json.dumps(asdict(compiler)))
            cache.store(name, note, ".json")
    return compiler, problem


def _asked(command: tuple[str, ...], cache: KernelCache) -> tuple[Compiler | None, str]:
    """Run the compiler to learn its version and which optional flags it takes."""
    try:
        said = subprocess.run([*command, "--version"], capture_output=True, text=True, check=False)
    except OSError as error:
        return None, str(error)
    version = (said.stdout.splitlines() or [""])[0].strip()
    with cache.scratch() as folder:
        flags = [*_BASE_FLAGS]
        problem = _refusal(command, flags, folder)
        if problem:
            return None, problem
        for choices in _OPTIONAL_FLAGS:
            chosen = next((flag for flag in choices if not _refusal(command, [*flags, flag], folder)), None)
            flags += [chosen] if chosen is not None else []
        if "-fopenmp" in flags and _takes_pool(command, [*flags, *POOL_FLAGS], folder):
            flags += POOL_FLAGS
    identity = json.dumps([command, version, flags, processor()])
    return Compiler(command, version, tuple(flags), identity), ""


def _takes_pool(command: Sequence[str], flags: Sequence[str], folder: Path) -> bool:
    """Whether parallel loops built with these flags need nothing but the pool."""
    source = f"#include <stdint.h>\n{pool_header()}\n{_PROBE}{_PROBE_OF_LOOPS}"
    if _refusal(command, flags, folder, source):
        return False
    built = max(folder.glob("probe*.so"), key=lambda path: path.stat().st_mtime_ns).read_bytes()
    return b"sc_use_pool" in built and b"libgomp" not in built and b"libomp" not in built


def _refusal(command: Sequence[str], flags: Sequence[str], folder: Path, text: str = _PROBE) -> str:
    """What the compiler says against these flags; empty if it takes them."""
    number = len(list(folder.iterdir()))
    source, library = folder / f"probe{number}.c", folder / f"probe{number}.so"  # a loaded file must not be written again
    source.write_text(text)
    done = subprocess.run([*command, *flags, "-o", str(library), str(source), "-lm"],
                          capture_output=True, text=True, errors="replace", check=False)
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or [f"it ended with code {done.returncode}"]
        return f"it cannot build a shared library ({lines[-1].strip()})"
    try:
        ctypes.CDLL(str(library))  # zig takes -fopenmp and leaves the calls to OpenMP undefined
    except OSError as error:
        return f"the shared library it built cannot be loaded ({error})"
    return ""


@lru_cache(maxsize=1)
def processor() -> str:
    """What `-march=native` depends on: the machine's processor and its features."""
    wanted = ("model name", "flags", "Features", "CPU part", "cpu family", "model", "uarch", "isa")
    found: dict[str, str] = {}
    try:
        with open("/proc/cpuinfo") as lines:
            for line in lines:
                field, _, value = line.partition(":")
                if field.strip() in wanted:
                    found.setdefault(field.strip(), value.strip())
    except OSError as error:
        logging.getLogger("symconv.codegen").debug("the processor is known by its platform name only: %s", error)
    return json.dumps([platform.machine(), platform.processor() if not found else "", found])
