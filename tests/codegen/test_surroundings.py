"""Compilers and machines that are not as one would wish: what hangs, fails, is full, locked or oddly named."""
from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from symconv.codegen import cache as cache_module
from symconv.codegen import ceilings, toolchain
from symconv.codegen import compiler as compiler_module
from symconv.codegen.cache import KernelCache, current_cache
from symconv.codegen.compiler import find_compiler, missing_compiler_error
from symconv.codegen.helpers import with_helpers
from symconv.codegen.kernel import Kernel
from symconv.codegen.threads import default_threads
from symconv.codegen.toolchain import build
from symconv.config import MOST_THREADS, config
from symconv.errors import BackendError

LOOP = with_helpers("/* counts */ int sc_test_counts(void *const *buffers, const int64_t *sizes) {\n"
                    "    int64_t *counts = buffers[0];\n    #pragma omp parallel for schedule(dynamic) num_threads((int)sizes[1])\n"
                    "    for (int64_t i = 0; i < sizes[0]; i++) counts[i]++;\n    return 0;\n}\n")


def kernel(number: int) -> Kernel:
    return Kernel("sc_test_number", f"/* test */\nint sc_test_number(void) {{ return {number}; }}\n")


def result(built) -> int:
    return ctypes.CFUNCTYPE(ctypes.c_int)(built.address)()


def counts(built, n: int, threads: int = 2):
    found, sizes = np.zeros(n, np.int64), np.array([n, threads])
    pointers = (ctypes.c_void_p * 1)(found.ctypes.data)
    function = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(built.address)
    assert function(ctypes.addressof(pointers), sizes.ctypes.data) == 0
    return found


def forget_everything() -> None:
    cache_module._cache_at.cache_clear()
    compiler_module._search.cache_clear()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty cache of its own, and a process that remembers no library."""
    monkeypatch.setattr(toolchain, "_opened", {})
    forget_everything()
    with config.change(cache_dir=str(tmp_path / "kernels")):
        yield tmp_path / "kernels"
    forget_everything()


@pytest.fixture
def script(tmp_path):
    """A function that makes a compiler of a few lines of shell, in front of the one that is there."""
    def make(lines: str) -> str:
        real = find_compiler()
        assert real is not None
        path = tmp_path / "compiler"
        path.write_text(f"#!/bin/sh\n{lines}\nexec {' '.join(real.command)} \"$@\"\n")
        path.chmod(0o755)
        compiler_module._search.cache_clear()
        return str(path)
    return make


def run_python(code: str, *options: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **environment}
    return subprocess.run([sys.executable, *options, "-c", code], env=variables, capture_output=True, timeout=120, check=False)


IN_A_CASE = """
import numpy as np, symconv as sc, symconv.tensor as T
x, w = T.tensor4("x"), T.tensor4("w")
f = sc.compile([x, w], T.tanh(T.nnet.conv2d(x, w)))
found = f(np.ones((1, 2, 5, 5), "float32"), np.ones((3, 2, 3, 3), "float32"))
assert found.shape == (1, 3, 3, 3) and abs(found - 1).max() < 1e-6, found
"""


def test_a_compiler_that_hangs_is_passed_over(folder, script, monkeypatch):
    monkeypatch.setattr(compiler_module, "_PROBE_SECONDS", 0.3)
    with config.change(compiler=script("sleep 30")):
        assert find_compiler() is None
        assert "did not end within 0.3 seconds" in str(missing_compiler_error())


def test_a_compiler_that_hangs_over_one_kernel(folder, script, monkeypatch):
    monkeypatch.setattr(toolchain, "KERNEL_SECONDS", 0.5)
    hanging = script('for f; do case "$f" in */kernel.c) exec sleep 30;; esac; done')
    text = r"could not be run for a kernel[\s\S]*did not end within 0\.5 seconds"
    with config.change(compiler=hanging), pytest.raises(BackendError, match=text):
        build([kernel(3)])
    assert not list(folder.glob("scratch-*"))


def test_a_compiler_that_prints_no_text(folder, script):
    with config.change(compiler=script("printf '\\377\\376\\200\\n'")):
        found = find_compiler()
        assert found is not None
        assert found.version == "\ufffd\ufffd\ufffd"
        assert result(build([kernel(4)])[0]) == 4


def test_a_compiler_that_is_killed_is_said_to_be(folder, script):
    """Other kernels of the same build are there afterwards."""
    with config.change(compiler=script('for f; do case "$f" in */kernel.c) grep -q "return 6" "$f" && kill -9 $$;; esac; done')):
        with pytest.raises(BackendError, match=r"was ended by SIGKILL[\s\S]*source: .*\.c[\s\S]*memory"):
            build([kernel(5), kernel(6)])
        assert result(build([kernel(5)])[0]) == 5


def test_a_compiler_gets_nothing_to_read(tmp_path):
    """One that reads what is typed would wait for ever, and take it from the program."""
    script = tmp_path / "compiler"
    script.write_text('#!/bin/sh\ncat > /dev/null\nexec cc "$@"\n')
    script.chmod(0o755)
    code = "from symconv.codegen.compiler import find_compiler; print(find_compiler().version)"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "SYMCONV_COMPILER": str(script),
                   "SYMCONV_CACHE_DIR": str(tmp_path / "kernels")}
    with subprocess.Popen([sys.executable, "-c", code], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            assert process.wait(timeout=60) == 0
        finally:
            process.kill()


@pytest.mark.parametrize("setting", ["gcc 'a quotation without end", "   ", "''"])
def test_settings_that_are_no_command(folder, setting, monkeypatch):
    with config.change(compiler=setting):
        assert find_compiler() is None
        assert "not found" in str(missing_compiler_error())
    monkeypatch.setenv("CC", setting)
    assert find_compiler() is not None


def test_where_no_thread_can_be_started_kernels_are_built_in_turn(folder, monkeypatch, caplog):
    def submit(*_):
        raise RuntimeError("can't start new thread")

    find_compiler()
    monkeypatch.setattr(ThreadPoolExecutor, "submit", submit)
    monkeypatch.setattr(toolchain, "usable_processors", lambda: 4)
    assert [result(each) for each in build([kernel(7), kernel(8)])] == [7, 8]
    assert "one after the other: can't start new thread" in caplog.text


def test_a_folder_without_room_is_left_for_a_temporary_one(folder, monkeypatch):
    """A compiler fails and no file of some size can be written: what is new goes elsewhere, with one warning."""
    find_compiler()
    cache = current_cache()
    compile_once = toolchain._compile

    def compile_where_there_is_room(source, name, compiler, where):
        if where.writable == folder:
            raise BackendError("the compiler's words about a full disk")
        return compile_once(source, name, compiler, where)

    monkeypatch.setattr(toolchain, "_compile", compile_where_there_is_room)
    with pytest.raises(BackendError, match="full disk"):
        build([kernel(9)])  # there is room, so it was something else
    monkeypatch.setattr(KernelCache, "why_no_room", lambda self: "No space left on device" if self.writable == folder else "")
    with pytest.warns(RuntimeWarning, match=r"cannot be used \(No space left on device\)") as warned:
        assert result(build([kernel(9)])[0]) == 9
    assert len(warned) == 1
    assert cache.writable != folder
    assert not list(folder.glob("??/*.so"))


def test_a_folder_of_somebody_elses_in_the_cache(folder, monkeypatch):
    """As after a call as the superuser, who made folders in the user's cache."""
    find_compiler()
    replace = os.replace

    def refuse(source, target):
        if Path(target).parent.parent == folder:
            raise PermissionError(13, "Permission denied", str(target))
        replace(source, target)

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.warns(RuntimeWarning, match="Permission denied"):
        assert result(build([kernel(12)])[0]) == 12


def test_a_compiler_is_looked_for_where_there_is_room(folder, monkeypatch):
    monkeypatch.setattr(KernelCache, "why_no_room", lambda self: "No space left on device")
    with pytest.warns(RuntimeWarning, match="No space left"):
        assert find_compiler() is None
    assert "nowhere to write to" in str(missing_compiler_error())


@pytest.mark.skipif(sys.platform != "linux", reason="the limit is Linux's")
def test_a_process_that_may_write_no_large_files(tmp_path):
    """No kernel can be built: references run, nothing breaks, and nothing is left behind."""
    code = f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n{IN_A_CASE}"
    done = run_python(code, SYMCONV_CACHE_DIR=str(tmp_path / "kernels"), TMPDIR=str(tmp_path))
    assert done.returncode == 0, done.stderr.decode()
    assert b"nowhere to write to" in done.stderr
    assert b"File too large" in done.stderr
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_what_can_be_made_again_need_not_be_kept(folder, monkeypatch, caplog):
    def refuse(*_, **__):
        raise OSError(28, "No space left on device")

    cache = current_cache()
    monkeypatch.setattr(KernelCache, "store", refuse)
    cache.store_made("ab" * 8, b"bytes", ".template")
    assert "is made again by the next process: it cannot be kept" in caplog.text
    assert cache.find("ab" * 8, ".template") is None


def test_no_place_at_all_is_one_clear_error(folder, monkeypatch):
    def refuse(*_, **__):
        raise FileNotFoundError(2, "No usable temporary directory found")

    monkeypatch.setattr(tempfile, "mkdtemp", refuse)
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(BackendError, match=r"no place for compiled kernels[\s\S]*No usable temporary[\s\S]*SYMCONV_CACHE_DIR"):
        current_cache()


def test_somebody_without_a_home(monkeypatch, tmp_path):
    """As in a container whose user is a number alone."""
    import platformdirs

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(platformdirs, "user_cache_dir", lambda name: f"~/.cache/{name}")
    assert cache_module._users_folder().parent == tmp_path
    with config.change(cache_dir="~no-such-user/kernels"), pytest.raises(BackendError, match=r"no place[\s\S]*no-such-user"):
        current_cache()


NAMES = ["with space", "quote'\"s", "dollar$x;`y`", "line\nbreak", "ümläut→", b"\xff\xfe no text"]


@pytest.mark.parametrize("name", NAMES, ids=range(len(NAMES)))
def test_folders_of_any_name(tmp_path, monkeypatch, name):
    monkeypatch.setattr(toolchain, "_opened", {})
    place = tmp_path / os.fsdecode(name)
    forget_everything()
    with config.change(cache_dir=str(place)):
        built = build([kernel(10), Kernel("sc_test_counts", LOOP)])
        assert result(built[0]) == 10
        assert (counts(built[1], 100) == 1).all()
    assert len(list(place.glob("??/*.so"))) >= 2
    forget_everything()


def test_a_file_system_that_runs_no_code(folder, monkeypatch):
    state = os.statvfs("/")
    noexec = type("State", (), {"f_flag": state.f_flag | os.ST_NOEXEC})
    monkeypatch.setattr(os, "statvfs", lambda path: noexec)
    with pytest.warns(RuntimeWarning, match="noexec"):
        assert current_cache().writable != folder


def test_files_are_read_and_written_in_utf8_wherever_we_are(tmp_path):
    """An ASCII locale, with every file that is opened in the locale's encoding an error."""
    done = run_python(IN_A_CASE.replace('"x"', r'"gr\u00f6\u00dfe\u2192"'), "-X", "utf8=0", "-X", "warn_default_encoding", "-W",
                      "error::EncodingWarning", LC_ALL="C", PYTHONCOERCECLOCALE="0", SYMCONV_CACHE_DIR=str(tmp_path / "kernels"),
                      SYMCONV_KEEP_SOURCES="1")
    assert done.returncode == 0, done.stderr.decode()


@pytest.mark.parametrize(("value", "wanted"), [("3", 3), (" 2 ", 2), ("4,2", 4), ("0", 0), ("", 0), ("-3", 0), ("many", 0),
                                               ("²", 0), ("1.5", 0), ("99999999999", MOST_THREADS)])
def test_threads_that_the_environment_asks_for(monkeypatch, value, wanted):
    monkeypatch.setenv("OMP_NUM_THREADS", value)
    assert default_threads() == (wanted or min(len(os.sched_getaffinity(0)), MOST_THREADS))


def test_a_process_with_one_processor():
    code = f"import os; os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])\n{IN_A_CASE}"
    code += "from symconv.codegen.threads import default_threads\nassert default_threads() == 1"
    done = run_python(code, OMP_NUM_THREADS="")
    assert done.returncode == 0, done.stderr.decode()


def test_ceilings_of_more_threads_than_the_arrays_have_pieces_for(monkeypatch):
    asked = []
    monkeypatch.setattr(ceilings, "_call", lambda width, dtype, which, arrays, sizes: asked.append(sizes) or (lambda: 1.0))
    array = np.zeros(1000, np.float32)
    ceilings._copies(array, array, 256, 32, 100, 1, 0.0, 256)
    ceilings._copies(array, array, 2, 32, 100, 1, 0.0, 2)
    assert [sizes[0] for sizes in asked] == [10, 2]


@pytest.mark.parametrize("options", [("-O",), ("-OO",), ("-W", "error")])
def test_pythons_that_are_told_to_be_strict(options):
    done = run_python(f"{IN_A_CASE}f.explain(); sc.pprint(x)", *options)
    assert done.returncode == 0, done.stderr.decode()


@pytest.mark.skipif(not hasattr(signal, "sigtimedwait"), reason="this system has no sigtimedwait")
def test_signals_are_the_programs_own():
    """A program that waits for a signal gets it: no worker of the pool takes it first."""
    code = """
import os, signal, numpy as np
from tests.codegen.test_surroundings import LOOP, counts
from symconv.codegen.kernel import Kernel
from symconv.codegen.toolchain import build
(built,) = build([Kernel("sc_test_counts", LOOP)])
for _ in range(20): assert (counts(built, 5000) == 1).all()
assert len(os.listdir("/proc/self/task")) >= 2
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
os.kill(os.getpid(), signal.SIGUSR1)
assert signal.sigtimedwait([signal.SIGUSR1], 20).si_signo == signal.SIGUSR1
"""
    root = str(Path(__file__).parents[2])  # NumPy's own threads would take any signal
    done = run_python(code, OMP_NUM_THREADS="2", OPENBLAS_NUM_THREADS="1", PYTHONPATH=os.pathsep.join([root, *sys.path]))
    assert done.returncode == 0, (done.returncode, done.stderr.decode())


def test_more_pieces_than_a_region_can_have(folder):
    (built,) = build([Kernel("sc_test_counts", LOOP)])
    for threads in (2, 300, 65535, 65536, 200_000):
        assert (counts(built, 70_000, threads) == 1).all(), threads


def test_forked_children_of_a_program_with_many_threads(folder):
    """Children made while other threads are in a parallel region compute all the same."""
    (built,) = build([Kernel("sc_test_counts", LOOP)])
    with ThreadPoolExecutor(3) as pool:
        running = [pool.submit(lambda: [counts(built, 20_000) for _ in range(40)]) for _ in range(3)]
        children = []
        for _ in range(6):
            child = os.fork()
            if child == 0:
                os._exit(0 if (counts(built, 20_000) == 1).all() else 1)
            children.append(child)
        assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0] * 6
        assert all((found == 1).all() for each in running for found in each.result())
