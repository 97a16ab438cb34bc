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
import tempfile
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
BASE_FLAGS = ("-std=gnu11", "-O3", "-fPIC", "-shared", "-fwrapv", "-fno-strict-aliasing", "-fno-math-errno",
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
_PROBE_OF_VECTORS = """/* bytes of a vector register and how many there are, of the processor that code is made for */
#if defined(__AVX512F__)
const int sc_vectors[2] = {64, 32};
#elif defined(__AVX2__)
const int sc_vectors[2] = {32, 16};
#elif defined(__aarch64__)
const int sc_vectors[2] = {16, 32};
#else
const int sc_vectors[2] = {16, 16};
#endif
"""
_PROBE_SECONDS = 60.0  # a compiler that takes longer over nothing hangs


@dataclass(frozen=True, slots=True)
class Compiler:
    """A C compiler: how to call it, its version line, the flags for kernels, whether it has OpenMP.

    `identity` spells all that the machine code it makes depends on, the processor included.  `vector_bytes` and `vector_registers`
    are those of the processor as the compiler uses it: without a flag for this processor it makes code for an older one.
    """

    command: tuple[str, ...]
    version: str
    flags: tuple[str, ...]
    identity: str
    vector_bytes: int = 16
    vector_registers: int = 16

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


def run_compiler(command: Sequence[str], folder: Path, seconds: float) -> tuple[int, str]:
    """Run a compiler: its exit status (negative: the signal that ended it) and what it said.

    Its own temporary files go into `folder`, its texts are in English, and it has nothing to read.  What it says goes into a file,
    since a pipe would be waited for as long as any process that it started lives.

    Raises:
        OSError: it cannot be run; a TimeoutError where it does not end.
    """
    environment = {**os.environ, "LC_ALL": "C", "TMPDIR": str(folder)}
    with tempfile.TemporaryFile(dir=folder) as said:
        try:
            done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=said, stderr=subprocess.STDOUT, env=environment,
                                  timeout=seconds, check=False)
        except subprocess.TimeoutExpired:
            raise TimeoutError(f"{command[0]} did not end within {seconds:g} seconds") from None
        said.seek(0)
        return done.returncode, said.read().decode("utf-8", "replace")


@lru_cache(maxsize=32)
def _search(setting: str, variable: str, path: str, cache_dir: str) -> tuple[Compiler | None, tuple[str, ...]]:
    tried = []
    for origin, command in _candidates(setting, variable):
        executable = shutil.which(command[0], path=path) if command else None
        if executable is None:
            tried.append(f"{origin}: not found")
            continue
        try:
            compiler, problem = _examined((os.path.abspath(executable), *command[1:]), current_cache())
        except (OSError, _ProbeError) as error:
            compiler, problem = None, str(error)
        if compiler is not None:
            return compiler, tuple(tried)
        tried.append(f"{origin}: {problem}")
    return None, tuple(tried)


def _candidates(setting: str, variable: str) -> Iterator[tuple[str, Sequence[str]]]:
    """Where to look, with what each place is called; a compiler that was set is the only one."""
    if setting:
        yield f"the setting compiler={setting!r}", _words(setting)
        return
    if variable.strip():
        yield f"$CC={variable!r}", _words(variable)
    for name in ("cc", "gcc", "clang"):
        yield name, (name,)
    spec = importlib.util.find_spec("ziglang")
    if spec is None or not spec.submodule_search_locations:
        yield "python -m ziglang cc", ("the package ziglang is not installed",)
    else:
        yield "python -m ziglang cc", (str(Path(spec.submodule_search_locations[0]) / "zig"), "cc")


def _words(command: str) -> Sequence[str]:
    """A command's words as a shell reads them; all of it as one word where a quotation does not end."""
    try:
        return shlex.split(command)
    except ValueError:
        return (command,)


def _examined(command: tuple[str, ...], cache: KernelCache) -> tuple[Compiler | None, str]:
    """The compiler behind a command, from the cache's notes or by asking it; else what is wrong with it."""
    state = Path(command[0]).stat()
    key = json.dumps([command, os.path.realpath(command[0]), state.st_mtime_ns, state.st_size, processor(),
                      BASE_FLAGS, _OPTIONAL_FLAGS, _PROBE, _PROBE_OF_VECTORS, POOL_FLAGS, pool_header()])
    name = hashlib.sha256(key.encode()).hexdigest()
    noted = cache.find(name, ".json")
    if noted is not None:
        fields = json.loads(noted.read_text(encoding="ascii"))
        return Compiler(**{**fields, "command": tuple(fields["command"]), "flags": tuple(fields["flags"])}), ""
    no_room = cache.see_to_room()
    compiler, problem = (None, f"nowhere to write to ({cache.writable}: {no_room})") if no_room else _asked(command, cache)
    if compiler is not None:
        cache.store_made(name, json.dumps(asdict(compiler)).encode("ascii"), ".json")
    return compiler, problem


def _asked(command: tuple[str, ...], cache: KernelCache) -> tuple[Compiler | None, str]:
    """Run the compiler to learn its version, which optional flags it takes and which vectors it knows."""
    with cache.scratch() as folder:
        said = run_compiler([*command, "--version"], folder, _PROBE_SECONDS)[1]
        version = (said.splitlines() or [""])[0].strip()
        flags = [*BASE_FLAGS]
        problem = _refusal(command, flags, folder)
        if problem:
            return None, problem
        for choices in _OPTIONAL_FLAGS:
            chosen = next((flag for flag in choices if not _refusal(command, [*flags, flag], folder)), None)
            flags += [chosen] if chosen is not None else []
        if "-fopenmp" in flags and _takes_pool(command, [*flags, *POOL_FLAGS], folder):
            flags += POOL_FLAGS
        vectors = (ctypes.c_int * 2).in_dll(_probe(command, flags, folder, _PROBE_OF_VECTORS), "sc_vectors")
        identity = json.dumps([command, version, flags, processor()])
        return Compiler(command, version, tuple(flags), identity, *vectors), ""


def _takes_pool(command: Sequence[str], flags: Sequence[str], folder: Path) -> bool:
    """Whether parallel loops built with these flags need nothing but the pool."""
    source = f"#include <stdint.h>\n{pool_header()}\n{_PROBE}{_PROBE_OF_LOOPS}"
    if _refusal(command, flags, folder, source):
        return False
    built = max(folder.glob("probe*.so"), key=lambda path: path.stat().st_mtime_ns).read_bytes()
    return b"sc_use_pool" in built and b"libgomp" not in built and b"libomp" not in built


class _ProbeError(Exception):
    """The compiler did not make of a probe what it should."""


def _refusal(command: Sequence[str], flags: Sequence[str], folder: Path, text: str = _PROBE) -> str:
    """What the compiler says against these flags; empty if it takes them."""
    try:
        _probe(command, flags, folder, text)
    except _ProbeError as error:
        return str(error)
    return ""


def _probe(command: Sequence[str], flags: Sequence[str], folder: Path, text: str) -> ctypes.CDLL:
    """A small library built with these flags, loaded."""
    number = sum(1 for _ in folder.glob("probe*.c"))
    source, library = folder / f"probe{number}.c", folder / f"probe{number}.so"  # a loaded file must not be written again
    source.write_text(text, encoding="utf-8")
    status, said = run_compiler([*command, *flags, "-o", str(library), str(source), "-lm"], folder, _PROBE_SECONDS)
    if status != 0:
        lines = said.strip().splitlines() or [f"it ended with code {status}"]
        raise _ProbeError(f"it cannot build a shared library ({lines[-1].strip()})")
    try:
        return ctypes.CDLL(str(library))  # zig takes -fopenmp and leaves the calls to OpenMP undefined
    except OSError as error:
        raise _ProbeError(f"the shared library it built cannot be loaded ({error})") from None


@lru_cache(maxsize=1)
def processor() -> str:
    """What `-march=native` depends on: the machine's processor and its features."""
    wanted = ("model name", "flags", "Features", "CPU part", "cpu family", "model", "uarch", "isa")
    found: dict[str, str] = {}
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as lines:
            for line in lines:
                field, _, value = line.partition(":")
                if field.strip() in wanted:
                    found.setdefault(field.strip(), value.strip())
    except OSError as error:
        logging.getLogger("symconv.codegen").debug("the processor is known by its platform name only: %s", error)
    return json.dumps([platform.machine(), platform.processor() if not found else "", found])
