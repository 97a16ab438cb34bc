"""Options and fixtures of the whole test suite."""
from __future__ import annotations

import os
from pathlib import Path

import pytest

if "PYTEST_XDIST_WORKER" in os.environ:  # beside other processes kernels use two threads, however many processors there are
    os.environ.setdefault("OMP_NUM_THREADS", "2")

from symconv.config import config
from symconv.errors import BackendError
from symconv.runtime.devices.find import find_device


def pytest_addoption(parser):
    parser.addoption("--update-golden", action="store_true", help="write the golden files from what is printed now")


@pytest.fixture
def golden(request):
    """A function that compares a text with the file `golden/NAME.txt` beside the test, or writes it (--update-golden)."""
    folder = Path(request.path).parent / "golden"

    def check(name: str, text: str) -> None:
        path = folder / f"{name}.txt"
        if request.config.getoption("--update-golden"):
            path.write_text(text + "\n", encoding="utf-8")
        assert path.exists(), f"{path} is missing; run pytest --update-golden"
        assert text + "\n" == path.read_text(encoding="utf-8")

    return check


@pytest.fixture(params=["emulator", pytest.param("cuda", marks=pytest.mark.gpu)])
def device(request):
    """The name of each kind of device with memory of its own, skipped with the reason where there is none.

    The emulator runs without watching every access, for speed; tests that want it watched say so.
    """
    try:
        find_device(request.param)
    except BackendError as error:
        pytest.skip(" ".join(str(error).split()))
    with config.change(emulator__checked=False):
        yield request.param
