"""CupyDevice on a stand-in for CuPy whose streams do nothing before they must: order of streams, staging, captures, memory."""
from __future__ import annotations

import gc
import inspect
import re
import threading
import time
from functools import partial

import numpy as np
import pytest
import stand_in_cupy
from stand_in_cupy import CUDARuntimeError, MemoryPointer, NdArray, StandIn

import symconv as sc
import symconv.tensor as T
from symconv.errors import BackendError, InputTypeError
from symconv.runtime.devices import cupy_base, cupy_launching
from symconv.runtime.devices.cupy_device import CupyDevice
from symconv.runtime.devices.find import _device
from symconv.runtime.devices.interface import DeviceMemoryError, Span


@pytest.fixture
def cupy(monkeypatch):
    world = StandIn()
    monkeypatch.setattr(cupy_base, "import_cupy", lambda: world)
    monkeypatch.setattr(cupy_launching, "compile_kernel", lambda source, arch: source.encode())
    _device.cache_clear()
    yield world
    _device.cache_clear()


def array_of(cupy, values, device=0):
    """A user's array, filled in the current stream: nothing is there before somebody waits."""
    values = np.asarray(values, np.float32)
    with cupy.cuda.Device(device):
        array = cupy.empty(values.shape, np.float32)
        cupy.fill(array, values)
    return array


def test_calls_one_after_the_other_share_the_staging_area(cupy):
    x = T.matrix("x")
    state = sc.shared(np.zeros((2, 3), np.float32), name="state")
    step = sc.compile([x], [], updates=[(state, state + x)], device="cuda")
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    for number in range(5):
        step(values * number)  # no result is fetched: only the staging area may be waited for
    np.testing.assert_array_equal(state.get_value(), values * 10)


def test_results_are_there_when_the_call_returns(cupy):
    x = T.matrix("x")
    function = sc.compile([x], [x * 2, x.sum()], device="cuda")
    for number in range(4):
        values = np.full((3, 5), number, np.float32)
        doubled, total = function(values)
        np.testing.assert_array_equal(doubled, values * 2)
        assert total == 15 * number


def test_launches_are_captured_in_the_second_call_and_replayed(cupy):
    x = T.matrix("x")
    state = sc.shared(np.float32(0), name="state")
    step = sc.compile([x], T.exp(x).sum(axis=0).max(), updates=[(state, state + x.sum())], device="cuda")
    values = np.ones((3, 5), np.float32)
    results = [float(step(values)) for _ in range(4)]
    np.testing.assert_allclose(results, 3 * np.e, rtol=1e-6)
    assert float(state.get_value()) == 60
    assert cupy.log.count("replayed") >= 3
    assert any("one recording" in text for text in step.programs[-1].launching())


def test_what_cannot_be_captured_is_launched_one_by_one_and_says_why(cupy):
    device = CupyDevice(0)
    reason = device.record([partial(cupy.alloc, 4)])
    assert "StreamCaptureUnsupported" in reason
    assert cupy.capturing is None
    with pytest.raises(ZeroDivisionError):
        device.record([lambda: 1 / 0])
    assert cupy.capturing is None


def test_another_thread_gets_nothing_into_a_recording(cupy):
    device = CupyDevice(0)
    clearing = device.clearing(Span.whole(device.allocate(64)))
    began = threading.Event()
    other = threading.Thread(target=lambda: (began.wait(), device.run([clearing, clearing])))
    other.start()
    assert not isinstance(device.record([began.set, partial(time.sleep, 0.05), clearing]), str)
    other.join()
    assert cupy.log == ["captured 1"]


def test_a_users_array_is_read_behind_what_he_has_issued_and_before_what_comes_next(cupy):
    x = T.vector("x")
    function = sc.compile([x], sc.Out(x * 2, on_device=True), device="cuda")
    array = array_of(cupy, [1, 2, 3])
    result = function(array)
    cupy.fill(array, [7, 7, 7])
    assert isinstance(result, NdArray)
    np.testing.assert_array_equal(result.get(), [2, 4, 6])


def test_results_on_the_device_are_read_by_the_users_stream_behind_the_kernels(cupy):
    x = T.vector("x")
    first = sc.compile([x], sc.Out(x + 1, on_device=True), device="cuda")
    second = sc.compile([x], x * 10, device="cuda")
    results = [first(np.full(4, number, np.float32)) for number in range(3)]
    np.testing.assert_array_equal([second(result)[0] for result in results], [10, 20, 30])


def test_arrays_in_another_order_and_on_another_gpu_are_copied_on_the_devices(cupy):
    x = T.matrix("x")
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    for name in ("cuda:0", "cuda:1"):
        function = sc.compile([x], x + 1, device=name)
        for where in (0, 1):
            np.testing.assert_array_equal(function(array_of(cupy, values, where)), values + 1)
            np.testing.assert_array_equal(function(array_of(cupy, values, where).T), values.T + 1)


def test_state_moves_between_two_gpus(cupy):
    state = sc.shared(np.zeros(3, np.float32), name="state")
    steps = [sc.compile([], [], updates=[(state, state + number)], device=f"cuda:{number}") for number in (0, 1)]
    for step in steps * 3:
        step()
    np.testing.assert_array_equal(state.get_value(), 3)


class Foreign:
    """Another library's array."""

    dtype = "float32"

    def __init__(self, array):
        self.array = array

    def __dlpack_device__(self):
        return 2, self.array.data.device_id

    def as_cupy(self, cupy):
        assert cupy.current[-1] == self.array.data.device_id
        return self.array


def test_arrays_of_other_libraries(cupy):
    x = T.vector("x")
    function = sc.compile([x], sc.Out(x * 3, on_device=True), device="cuda")
    array = array_of(cupy, [1, 2])
    result = function(Foreign(array))
    array.now()[...] = 9  # in a stream that nobody knows of: the elements must have been read
    np.testing.assert_array_equal(result.get(), [3, 6])


def test_an_array_that_cannot_be_taken_is_named(cupy, monkeypatch):
    def refuses(array):
        raise BufferError("it requires a gradient")

    monkeypatch.setattr(cupy, "from_dlpack", refuses, raising=False)
    x = T.vector("x")
    function = sc.compile([x], x, device="cuda")
    with pytest.raises(InputTypeError, match="requires a gradient"):
        function(Foreign(array_of(cupy, [1])))
    with pytest.raises(InputTypeError, match=r"rank|shape"):
        function(array_of(cupy, [[1]]))


def test_no_memory_is_one_error_with_sizes(cupy):
    device = CupyDevice(0)
    cupy.limit = cupy.in_use + 100
    with pytest.raises(DeviceMemoryError, match=r"allocating 4,000(?s:.*)100 of"):
        device.allocate(4000)


def test_memory_is_given_back(cupy):
    x = T.matrix("x")
    state = sc.shared(np.ones((4, 4), np.float32), name="state")
    function = sc.compile([x], T.dot(x, state), device="cuda")
    for _ in range(3):
        function(np.ones((4, 4), np.float32))
    assert cupy.in_use
    del function, state
    gc.collect()
    _device("cuda", 0).synchronize()  # what waits in the stream holds memory too
    assert cupy.in_use == 0


def test_errors_of_cuda_are_backend_errors(cupy):
    device = CupyDevice(0)

    def fails():
        raise CUDARuntimeError("an illegal address")

    with pytest.raises(BackendError, match="illegal address"):
        device.run([fails])


def test_times_of_steps_and_of_groups(cupy):
    device = CupyDevice(0)
    buffer = device.allocate(64)
    clearing = device.clearing(Span.whole(buffer))
    assert device.time([clearing], 4) > 0
    assert [seconds >= waited >= 0 for seconds, waited in device.timed([[clearing], [clearing, clearing]])] == [True, True]


def _real_signature(owner, name):
    """CuPy writes the signatures of its compiled functions on the first line of their texts."""
    text = (getattr(owner, name).__doc__ or "").strip().splitlines()[0]
    inside = re.search(r"\((.*)\)", text)
    names = [part.split("=")[0].split()[-1].lstrip("*") for part in inside.group(1).split(",") if part.strip()]
    return [each for each in names if each != "self"]


def test_the_stand_in_has_the_signatures_of_cupy():
    cupy = pytest.importorskip("cupy", reason="CuPy is not installed")
    cuda = cupy.cuda
    pairs = [(MemoryPointer, cuda.MemoryPointer, name) for name in
             ("copy_from_device_async", "copy_from_host_async", "copy_to_host_async", "memset_async")]
    pairs += [(stand_in_cupy._Stream, cuda.Stream, name) for name in
              ("synchronize", "record", "wait_event", "begin_capture", "end_capture")]
    pairs += [(stand_in_cupy._Graph, cuda.Graph, "launch"), (stand_in_cupy._Module, cuda.function.Module, "load"),
              (stand_in_cupy._Module, cuda.function.Module, "get_function"), (stand_in_cupy._Event, cuda.Event, "record"),
              (stand_in_cupy._Event, cuda.Event, "synchronize")]
    for ours, theirs, name in pairs:
        wanted = [each for each in inspect.signature(getattr(ours, name)).parameters if each != "self"]
        assert _real_signature(theirs, name) == wanted, name
