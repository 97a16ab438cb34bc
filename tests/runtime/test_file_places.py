"""Every writer of files: there as a whole or not at all, whatever the disk does."""
from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import symconv as sc
import symconv.tensor as T
from symconv.runtime.file_places import whole_file, write_whole_text

NEEDS_LINUX = pytest.mark.skipif(sys.platform != "linux", reason="the limit of a file's size is Linux's")
WRITERS = ["f.save(path)", "sc.to_html(f, path)", "sc.draw(f, path, engine='builtin')", "f.profile.to_trace(path)"]


@NEEDS_LINUX
@pytest.mark.parametrize("writer", WRITERS)
def test_a_full_disk_leaves_what_was_there(tmp_path, writer):
    """The process may write no file beyond 300 bytes: the same failure as that of a full disk."""
    path = tmp_path / "file.svg"
    path.write_text("what was there")
    code = f"""
import resource, numpy as np, symconv as sc, symconv.tensor as T
x = T.vector("x")
f = sc.compile([x], T.exp(x) * 2, profile=True)
f(np.zeros(3, "float32"))
path = {str(path)!r}
resource.setrlimit(resource.RLIMIT_FSIZE, (300, 300))
try:
    {writer}
except OSError as error:
    print(error)
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert "File too large" in done.stdout
    assert "file.svg" in done.stdout
    assert path.read_text() == "what was there"
    assert list(tmp_path.iterdir()) == [path]


def test_an_error_in_the_middle_leaves_nothing(tmp_path):
    def pages():
        yield b"half"
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), whole_file(tmp_path / "file") as file:
        file.writelines(pages())
    assert not list(tmp_path.iterdir())


def test_modes_and_links_stay(tmp_path):
    new, private, link = tmp_path / "new", tmp_path / "private", tmp_path / "link"
    private.write_text("old")
    private.chmod(0o640)
    link.symlink_to(private)
    write_whole_text(new, "grüße")
    write_whole_text(link, "written")
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE(new.stat().st_mode) == 0o666 & ~mask
    assert new.read_text(encoding="utf-8") == "grüße"
    assert link.is_symlink()
    assert private.read_text() == "written"
    assert stat.S_IMODE(private.stat().st_mode) == 0o640


def test_what_is_no_plain_file_stays_what_it_is(tmp_path):
    """A pipe gets the bytes; it is not replaced by a file (as a superuser's /dev/null would be)."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    found = []
    reader = threading.Thread(target=lambda: found.append(pipe.read_bytes()))
    reader.start()
    x = T.vector("x")
    sc.compile([x], 2 * x).save(pipe)
    reader.join(timeout=20)
    assert found
    assert found[0].startswith(b"PK")
    assert stat.S_ISFIFO(pipe.stat().st_mode)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_device_without_room_is_named():
    x = T.vector("x")
    with pytest.raises(OSError, match=r"No space left on device: '/dev/full'"):
        sc.to_html(sc.compile([x], 2 * x), "/dev/full")


def test_a_file_in_a_folder_that_takes_no_new_ones(tmp_path, monkeypatch):
    path = tmp_path / "file"
    path.write_text("something longer than what follows")
    monkeypatch.setattr(os, "access", lambda *_: False)
    write_whole_text(path, "short")
    assert path.read_text() == "short"


def test_long_names(tmp_path):
    for name in ("n" * 255, "名" * 85):
        write_whole_text(tmp_path / name, "text")
        assert (tmp_path / name).read_text() == "text"
