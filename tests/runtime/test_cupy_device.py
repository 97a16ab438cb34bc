"""What CupyDevice does when a capture fails, with a stand-in for CuPy: the rest of it needs a GPU."""
from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from symconv.errors import BackendError
from symconv.runtime.devices.cupy_device import CupyDevice


class CudaError(RuntimeError):
    """What CuPy raises for the runtime's and the driver's errors."""


class Stream:
    """Captures, or fails to; `launched` counts replays."""

    def __init__(self, fails: bool) -> None:
        self.fails, self.is_capturing, self.launched = fails, False, 0

    def begin_capture(self, mode):
        self.is_capturing = True

    def end_capture(self):
        self.is_capturing = False
        if self.fails:
            raise CudaError("the capture was invalidated")
        return SimpleNamespace(launch=self.launch)

    def launch(self, stream):
        self.launched += 1

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None


@pytest.fixture
def device():
    def make(fails=False):
        made = object.__new__(CupyDevice)
        made.name, made._device, made.stream = "cuda:0", nullcontext(), Stream(fails)
        runtime = SimpleNamespace(streamCaptureModeThreadLocal=1, CUDARuntimeError=CudaError)
        made.cupy = SimpleNamespace(cuda=SimpleNamespace(runtime=runtime, driver=SimpleNamespace(CUDADriverError=CudaError)))
        return made

    return make


def refused():
    raise BackendError("this call may not be made during a capture")


def test_a_captured_graph_is_launched_as_a_whole(device):
    made = device()
    replay = made.record(lambda: None)
    replay()
    replay()
    assert made.stream.launched == 2


@pytest.mark.parametrize(("fails", "work"), [(False, refused), (True, refused), (True, lambda: None)])
def test_what_cannot_be_captured_is_launched_step_by_step(device, fails, work):
    made = device(fails)
    assert made.record(work) is None
    assert not made.stream.is_capturing


def test_other_errors_end_the_capture_and_are_raised(device):
    made = device()
    with pytest.raises(ZeroDivisionError):
        made.record(lambda: 1 / 0)
    assert not made.stream.is_capturing
