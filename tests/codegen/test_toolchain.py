"""Finding a compiler, building, and the cache of kernels under all that can happen to it."""
from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from pathlib import Path

import pytest

from symconv.codegen import cache as cache_module
from symconv.codegen import compiler as compiler_module
from symconv.codegen import toolchain
from symconv.codegen.cache import KernelCache, current_cache
from symconv.codegen.compiler import find_compiler, missing_compiler_error
from symconv.codegen.helpers import with_helpers
from symconv.codegen.kernel import Kernel
from symconv.codegen.toolchain import build
from symconv.config import config
from symconv.errors import BackendError


def kernel(number):
    return Kernel("sc_test_number", f"/* test */\nint sc_test_number(void) {{ return {number}; }}\n")


def result(built):
    return ctypes.CFUNCTYPE(ctypes.c_int)(built.address)()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty cache of its own, and a process that remembers no library."""
    monkeypatch.setattr(toolchain, "_opened", {})
    place = tmp_path / "kernels"
    with config.change(cache_dir=str(place)):
        yield place
    cache_module._cache_at.cache_clear()
    compiler_module._search.cache_clear()


def forget():
    toolchain._opened.clear()


def entries(folder, suffix=".so"):
    return sorted(folder.glob(f"??/*{suffix}"))


def count_processes(monkeypatch):
    started = []
    run = subprocess.run
    monkeypatch.setattr(subprocess, "run", lambda command, **options: (started.append(command), run(command, **options))[1])
    return started


def test_build_and_cache(folder, monkeypatch):
    """Cold: compiled once each, privately; warm: no process at all, not even to ask for the compiler's version."""
    built = build([kernel(1), kernel(2), kernel(1)])
    assert [result(each) for each in built] == [1, 2, 1]
    assert len(entries(folder)) == 2
    assert folder.stat().st_mode & 0o777 == 0o700
    assert not list(folder.glob("scratch-*"))
    forget()
    cache_module._cache_at.cache_clear()
    compiler_module._search.cache_clear()
    started = count_processes(monkeypatch)
    assert [result(each) for each in build([kernel(1), kernel(2)])] == [1, 2]
    assert started == []


@pytest.mark.parametrize("damage", [lambda data: data[:len(data) // 2], lambda data: b"", lambda data: b"rubbish" * 1000,
                                    lambda data: data[:-1] + bytes([data[-1] ^ 1])])
def test_damaged_entries_are_built_again(folder, damage):
    build([kernel(5)])
    forget()
    (entry,) = entries(folder)
    data = entry.read_bytes()
    entry.unlink()  # the library is loaded from this file: never write into it
    entry.write_bytes(damage(data))
    assert result(build([kernel(5)])[0]) == 5
    assert entry.read_bytes() == data


def test_a_missing_digest_is_a_missing_entry(folder):
    build([kernel(6)])
    forget()
    entries(folder, ".sha256")[0].unlink()
    assert result(build([kernel(6)])[0]) == 6


def test_processes_share_a_cold_cache(folder):
    """Many processes build the same kernels at once in an empty folder; all give the right answers."""
    script = ("import ctypes, sys; from symconv.codegen.toolchain import build; from symconv.codegen.kernel import Kernel\n"
              "ks = [Kernel('sc_f', '/* */ int sc_f(void) { return %d; }' % n) for n in range(3)]\n"
              "assert [ctypes.CFUNCTYPE(ctypes.c_int)(b.address)() for b in build(ks)] == [0, 1, 2]")
    environment = {**os.environ, "SYMCONV_CACHE_DIR": str(folder), "PYTHONPATH": os.pathsep.join(sys.path)}
    running = [subprocess.Popen([sys.executable, "-c", script], env=environment, stderr=subprocess.PIPE) for _ in range(6)]
    errors = [process.communicate(timeout=120)[1].decode() for process in running]
    assert [process.returncode for process in running] == [0] * 6, errors
    assert len(entries(folder)) == 3
    assert not list(folder.glob("scratch-*"))


def test_folder_that_others_can_write_to_is_refused(tmp_path):
    open_folder = tmp_path / "open"
    open_folder.mkdir()
    open_folder.chmod(0o777)
    with pytest.raises(BackendError, match=r"others can write to it[\s\S]*chmod go-w"):
        KernelCache(open_folder)
    (tmp_path / "file").write_text("")
    with pytest.raises(BackendError, match="not a folder"):
        KernelCache(tmp_path / "file")


def test_read_only_folder_reads_there_and_writes_elsewhere(folder, monkeypatch):
    """One warning; what is in the folder is used, what is new goes to a private temporary folder."""
    build([kernel(7)])
    forget()
    cache_module._cache_at.cache_clear()
    monkeypatch.setattr(os, "access", lambda *_: False)  # the tests may run as root, whom modes do not stop
    with pytest.warns(RuntimeWarning, match="read-only") as warned:
        cache = current_cache()
    assert len(warned) == 1
    assert result(build([kernel(7)])[0]) == 7
    assert not list(cache.writable.glob("??/*.so"))
    assert result(build([kernel(8)])[0]) == 8
    assert cache.writable != folder
    assert len(list(cache.writable.glob("??/*.so"))) == 1
    assert len(entries(folder)) == 1


def test_compile_error_tells_the_compilers_words_and_the_source(folder):
    with pytest.raises(BackendError, match=r"undeclared_name[\s\S]*source: .*\.c") as caught:
        build([Kernel("sc_bad", "int sc_bad(void) { return undeclared_name; }")])
    place = Path(str(caught.value).split("source: ")[1].splitlines()[0])
    assert "undeclared_name" in place.read_text()
    assert not entries(folder)


def test_no_compiler_is_one_clear_error(folder, monkeypatch):
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setattr(compiler_module.importlib.util, "find_spec", lambda name: None)
    assert find_compiler() is None
    with pytest.raises(BackendError, match=r"no C compiler[\s\S]*cc: not found[\s\S]*ziglang[\s\S]*apt install gcc"):
        build([kernel(1)])
    assert isinstance(missing_compiler_error(), BackendError)


def test_a_compiler_that_was_set_is_the_only_one_tried(folder):
    with config.change(compiler="no-such-compiler -m64"):
        assert find_compiler() is None
        assert "no-such-compiler" in str(missing_compiler_error())
    with config.change(compiler="false"):
        assert find_compiler() is None


def test_stale_scratch_is_removed(tmp_path):
    place = tmp_path / "kernels"
    KernelCache(place)
    old, new = place / "scratch-old", place / "scratch-new"
    old.mkdir()
    new.mkdir()
    os.utime(old, (0, 0))
    KernelCache(place)
    assert not old.exists()
    assert new.exists()


def test_helpers_are_put_in_as_needed():
    text = with_helpers("/* a kernel */\nfloat f(float x) { return sc_sigmoid_f32(x); }\n")
    assert text.startswith("/* a kernel */\n#include <stdint.h>")
    assert text.index("float sc_exp_minus_size_f32(") < text.index("float sc_sigmoid_f32(")
    assert "sc_log_f32" not in text
    assert "sc_" not in with_helpers("/* nothing */\nint f(void) { return 0; }\n")
