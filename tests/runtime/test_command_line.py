"""python -m symconv doctor and cache."""
from __future__ import annotations

import subprocess
import sys
import uuid
from pathlib import Path

import pytest

import symconv as sc
import symconv.tensor as T
from symconv.cli import main
from symconv.codegen.cudnn.library import looked_for
from symconv.codegen.toolchain import build_sources
from symconv.config import config
from symconv.errors import ArgumentError, BackendError
from symconv.runtime.doctor import examine, report


@pytest.fixture
def own_cache(tmp_path):
    """A kernel cache with a few entries."""
    with config.change(cache_dir=str(tmp_path / "cache")):
        build_sources([f"/* {uuid.uuid4()} */ int answer(void) {{ return 42; }}"])  # new, so that no process has loaded it yet
        yield tmp_path / "cache"


def test_doctor_finds_all_that_the_cpu_needs(own_cache, capsys):
    assert main(["doctor"]) == 0
    text = capsys.readouterr().out
    assert "a compiled function    ok" in text
    assert "the emulator           ok" in text
    assert str(own_cache) in text
    assert "all that compiling for the CPU needs is here" in text


def test_doctor_says_what_brings_a_compiler(monkeypatch):
    monkeypatch.setattr("symconv.runtime.doctor.find_compiler", lambda: None)
    text = report(examine())
    assert "C compiler             MISSING" in text
    assert "apt install gcc, or python -m pip install ziglang" in text
    assert "missing: C compiler" in text


def test_doctor_survives_what_breaks_under_its_eyes(monkeypatch):
    def fails():
        raise OSError("the disk is gone")

    monkeypatch.setattr("symconv.runtime.doctor._cache", fails)
    assert "OSError: the disk is gone" in report(examine())


def test_doctor_says_where_it_looked_for_all_that_a_gpu_needs():
    text = report(examine())
    for part in ("driver libcuda.so.1", "Python package cudnn", "cuDNN ", "NVRTC", "cuDNN without a GPU", "CuPy"):
        assert part in text
    if "libcudnn.so.9 in" in text:  # not found: in which folders
        assert "/usr/local/cuda/lib64" in text


def test_cuda_without_a_gpu_is_one_error_that_names_what_was_looked_for():
    if looked_for()[0].is_there:
        pytest.skip("there is a GPU")
    x = T.vector("x")
    with pytest.raises(BackendError) as caught:
        sc.compile([x], x * 2, device="cuda")
    text = str(caught.value)
    for part in ("driver libcuda.so.1: not found", "Python package cupy", "Python package cudnn", "cuDNN: ", "NVRTC: "):
        assert part in text


def test_cache_is_listed_checked_and_cleared(own_cache, capsys):
    assert main(["cache", "stats"]) == 0
    assert " so" in capsys.readouterr().out
    assert main(["cache", "list"]) == 0
    libraries = [line.split()[-1] for line in capsys.readouterr().out.splitlines() if ".so" in line]
    assert libraries
    assert main(["cache", "verify"]) == 0
    with open(libraries[0], "r+b") as library:
        library.write(b"broken")
    assert main(["cache", "verify"]) == 1
    assert libraries[0] in capsys.readouterr().out
    assert main(["cache", "clear"]) == 0
    assert "entries removed" in capsys.readouterr().out
    assert main(["cache", "stats"]) == 0
    assert "empty" in capsys.readouterr().out


def test_a_closed_pipe_ends_a_command_quietly():
    """As `symconv config | head -1` does it: no traceback, and the status that shells give."""
    command = subprocess.Popen([sys.executable, "-m", "symconv", "config"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert command.stdout is not None
    command.stdout.close()  # nobody reads, from the start
    _, errors = command.communicate(timeout=60)
    assert command.returncode == 141
    assert errors == b""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("command", ["config", "doctor"])
def test_output_that_cannot_be_written_is_told_in_a_line(command):
    with open("/dev/full", "wb") as full:
        done = subprocess.run([sys.executable, "-m", "symconv", command], stdout=full, stderr=subprocess.PIPE, timeout=60)
    assert done.returncode == 74
    assert done.stderr.decode().splitlines() == ["symconv: the output cannot be written: No space left on device"]


def test_a_broken_pipe_of_a_script_is_its_own(tmp_path):
    (tmp_path / "script.py").write_text("raise BrokenPipeError('mine')")
    command = [sys.executable, "-m", "symconv", "show", f"{tmp_path / 'script.py'}:x"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "BrokenPipeError: mine" in done.stderr


def test_no_place_and_no_memory_are_told_in_words(tmp_path, capsys):
    (tmp_path / "script.py").write_text("import symconv.tensor as T\nx = T.vector('x') + 1")
    for place in (tmp_path / "missing" / "page.html", tmp_path):
        assert main(["show", f"{tmp_path / 'script.py'}:x", "--html", str(place)]) == 2
        assert "no place for a file" in capsys.readouterr().out
    assert main(["bench", "fprop n100000 c100000 h5000 w5000 k1 r3 s3 f32"]) == 2
    assert "there is no memory for the tensors" in capsys.readouterr().out


@pytest.mark.parametrize(("command", "told"), [
    (["demo", "--epochs", "-1"], "a whole number from 1 on is needed, this is '-1'"),
    (["demo", "--epochs", "0"], "a whole number from 1 on is needed, this is '0'"),
    (["demo", "--epochs", "many"], "a whole number from 1 on is needed, this is 'many'"),
    (["bisect"], "the following arguments are required: script\n"),
])
def test_arguments_that_are_none_are_told(command, told, capsys):
    with pytest.raises(SystemExit) as stop:
        main(command)
    assert stop.value.code == 2
    assert told in capsys.readouterr().err


def test_every_writer_refuses_a_place_for_no_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder.svg").mkdir()
    x = T.vector("x")
    f = sc.compile([x], x + 1, profile=True)
    f([1.0])
    for place in ("", tmp_path / "folder.svg", tmp_path / "missing" / "file.svg", "a\0b.svg", b"a.svg", 3):
        for write in (lambda path: sc.to_html(x, path), f.save, f.profile.to_trace, lambda path: sc.draw(x, path)):
            with pytest.raises(ArgumentError):
                write(place)
    assert [each.name for each in tmp_path.rglob("*")] == ["folder.svg"]
