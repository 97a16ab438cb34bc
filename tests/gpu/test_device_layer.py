"""What the runtime asks of a device, on each kind of device: copies, launches, recordings, arrays of the user's, memory."""
from __future__ import annotations

import gc

import numpy as np
import pytest

import symconv as sc
import symconv.tensor as T
from symconv.codegen.cuda.kernel import CudaKernel, Scalar
from symconv.config import config
from symconv.errors import BackendError, InputTypeError
from symconv.runtime.devices.find import ALIGNMENT, find_device
from symconv.runtime.devices.interface import DeviceMemoryError, Span
from symconv.runtime.outputs import MOST_KEPT

SCALE = """#include "symconv.cuh"
extern "C" __global__ void __launch_bounds__(128) sc_scale(sc_global<float> out, sc_global<const float> x, float factor,
                                                           int32_t n) {
    int32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = factor * x[i];
}
"""


@pytest.fixture
def place(device):
    """The device itself."""
    return find_device(device)


def filled(place, array):
    """Memory of a device with an array's elements."""
    buffer = place.allocate(array.nbytes)
    place.upload(buffer, array)
    return Span.whole(buffer)


def fetched(place, span, dtype=np.float32):
    """The elements of a span."""
    array = np.empty(span.buffer.nbytes // np.dtype(dtype).itemsize, dtype)
    place.download(span.buffer, array)
    return array


def scaling(place, target, source, factor, n):
    """A launch of the kernel above."""
    scalars = (Scalar("float32", factor), Scalar("int32", n))
    kernel = CudaKernel("sc_scale", SCALE, (-(-n // 128), 1, 1), (128, 1, 1), (0, 1), scalars)
    return place.bind(kernel, [target, source])


def test_properties(place, device):
    properties = place.properties
    assert properties.arch >= 75
    assert properties.memory_bytes > 1 << 30
    assert properties.shared_bytes_per_block >= 48 << 10
    assert place.name == ("cuda:0" if device == "cuda" else device)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int64", "uint8", "bool"])
def test_what_goes_up_comes_down(place, dtype):
    array = np.arange(1000).astype(dtype)
    np.testing.assert_array_equal(fetched(place, filled(place, array), dtype), array)


def test_large_copies_and_none_at_all(place):
    large = np.random.default_rng(0).integers(0, 255, (3 << 20) + 1, np.uint8)
    np.testing.assert_array_equal(fetched(place, filled(place, large), np.uint8), large)
    assert fetched(place, filled(place, large[:0]), np.uint8).size == 0


def test_an_uploaded_array_may_be_changed_at_once(place):
    arrays = [np.full(1 << 18, number, np.float32) for number in range(4)]
    spans = []
    for array in arrays:
        spans.append(filled(place, array))
        array[:] = -1
    assert [float(fetched(place, span).sum()) for span in spans] == [number * (1 << 18) for number in range(4)]


def test_launches_copies_and_fills_keep_their_order(place):
    source = filled(place, np.arange(500, dtype=np.float32))
    middle, target = (Span.whole(place.allocate(2000)) for _ in range(2))
    place.run([place.clearing(middle), place.clearing(target), scaling(place, middle, source, 3, 400),
               place.copying(target, middle), place.clearing(Span(target.buffer, 0, 40, 0)),
               scaling(place, source, target, 2, 500)])
    wanted = np.where((np.arange(500) >= 10) & (np.arange(500) < 400), 6 * np.arange(500), 0)
    np.testing.assert_array_equal(fetched(place, source), wanted)


def test_a_recording_runs_all_of_its_actions_each_time(place, device):
    one, other = filled(place, np.ones(300, np.float32)), filled(place, np.zeros(300, np.float32))
    actions = [scaling(place, other, one, 2, 300), place.copying(one, other)]
    place.run(actions)
    recorded = place.record(actions)
    if device == "emulator":
        assert isinstance(recorded, str)
        return
    assert not isinstance(recorded, str)
    np.testing.assert_array_equal(fetched(place, one), 2)  # recording has run nothing
    place.run([recorded, recorded])
    np.testing.assert_array_equal(fetched(place, one), 8)


@pytest.mark.gpu
def test_what_cannot_be_recorded_says_why_and_harms_nothing():
    try:
        place = find_device("cuda")
    except BackendError as error:
        pytest.skip(" ".join(str(error).split()))
    span = filled(place, np.ones(10, np.float32))
    assert isinstance(place.record([place.clearing(span), place.stream.synchronize]), str)
    np.testing.assert_array_equal(fetched(place, span), 1)
    place.run([place.clearing(span)])
    np.testing.assert_array_equal(fetched(place, span), 0)


def test_staging_memory_is_left_behind_a_mark(place):
    staged = place.staging(4000)
    targets = [Span.whole(place.allocate(4000)) for _ in range(3)]
    for number, target in enumerate(targets):
        staged.view(np.float32)[:] = number
        place.send(target, staged)
        place.mark()()
    back = place.staging(4000)
    for number, target in enumerate(targets):
        place.fetch(back, target)
        place.synchronize()
        np.testing.assert_array_equal(back.view(np.float32), number)


def test_times(place):
    span = filled(place, np.ones(1 << 16, np.float32))
    action = scaling(place, span, span, 1, 1 << 16)
    place.run([action])
    assert 0 < place.time([action], 3) < 10
    (one, two) = place.timed([[action], [action, action]])
    assert one[0] >= one[1] >= 0
    assert two[0] >= two[1] >= 0


def test_arrays_over_memory_with_any_strides(place):
    values = np.arange(24, dtype=np.float32)
    span = filled(place, values)
    with place.here():
        whole = place.as_array(span, np.dtype("float32"), (4, 6), (6, 1))
        turned = place.as_array(Span(span.buffer, 0, 96, 23 * 4), np.dtype("float32"), (6, 4), (-1, -6))
        shown = [np.asarray(each.get() if hasattr(each, "get") else each) for each in (whole, turned)]
    np.testing.assert_array_equal(shown[0], values.reshape(4, 6))
    np.testing.assert_array_equal(shown[1], values.reshape(4, 6)[::-1, ::-1].T)


def test_memory_starts_on_a_boundary_and_is_given_back(place):
    gc.collect()
    place.synchronize()
    before = place.memory_in_use()
    buffers = [place.allocate(nbytes) for nbytes in (1, 1000, 1 << 20)]
    assert place.memory_in_use() >= before + 1001 + (1 << 20)
    addresses = [int(each.address if hasattr(each, "address") else each.pointer.ptr) for each in buffers]
    assert not any(address % ALIGNMENT for address in addresses)
    del buffers
    gc.collect()
    assert place.memory_in_use() == before


def test_more_memory_than_there_is_is_one_error_with_sizes(place):
    with pytest.raises(DeviceMemoryError, match=r"\d,\d{3}"):
        place.allocate(1 << 50)
    assert fetched(place, filled(place, np.ones(4, np.float32))).sum() == 4  # and the device goes on


def test_a_function_without_memory_says_what_it_needs_and_changes_no_state(device):
    state = sc.shared(np.ones(4, np.float32), name="state")
    x = T.vector("x")
    n = T.lscalar("n")
    step = sc.compile([x, n], T.zeros((n, n, n)).sum() + T.exp(T.zeros((n, n, n)) + x[0]).sum(axis=0), device=device,
                      updates=[(state, state + x.sum())])
    step(np.ones(1, np.float32), 2)
    with pytest.raises(BackendError, match=r"bytes"):
        step(np.ones(1, np.float32), 1 << 15)
    np.testing.assert_array_equal(state.get_value(), 2)
    step(np.ones(1, np.float32), 2)
    np.testing.assert_array_equal(state.get_value(), 3)


def test_workspaces_get_smaller_where_memory_is_short(device, monkeypatch):
    x = T.vector("x")
    function = sc.compile([x], x * 2, device=device)
    real, asked = function._build_once, []

    def short(graph, arrays):
        asked.append(config.workspace_bytes)
        if len(asked) < 4:
            raise DeviceMemoryError("1,000 bytes are too many")
        return real(graph, arrays)

    monkeypatch.setattr(function, "_build_once", short)
    before = config.workspace_bytes
    np.testing.assert_array_equal(function(np.ones(3, np.float32)), 2)
    assert asked == [before, before, 64 << 20, 0]
    assert config.workspace_bytes == before


def test_programs_for_other_shapes_make_room(monkeypatch):
    place = find_device("emulator")
    x = T.vector("x")
    state = sc.shared(np.zeros(1, np.float32), name="state")
    function = sc.compile([x], T.exp(x), updates=[(state, state + x[:1])], device="emulator")
    n = 1 << 16
    function(np.ones(n, np.float32))
    gc.collect()
    monkeypatch.setattr(place, "memory_limit", place.memory_in_use() + 6 * n)  # room for one more result, not for its input
    for size in (n + 1, n + 2, n):
        np.testing.assert_allclose(function(np.zeros(size, np.float32)), 1)
    monkeypatch.setattr(place, "memory_limit", place.memory_in_use())
    with pytest.raises(DeviceMemoryError, match="bytes"):
        function(np.ones(16 * n, np.float32))
    np.testing.assert_array_equal(state.get_value(), 1)
    function(np.ones(n, np.float32))
    np.testing.assert_array_equal(state.get_value(), 2)


def test_results_left_on_the_device_are_inputs_of_others(device, place):
    x = T.matrix("x")
    first = sc.compile([x], [sc.Out(x * 2, on_device=True), x.sum()], device=device)
    second = sc.compile([x], x + 1, device=device)
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    left, total = first(values)
    assert total == 15
    assert place.lent(left) is not None
    np.testing.assert_array_equal(second(left), values * 2 + 1)
    np.testing.assert_array_equal(second(left.T), values.T * 2 + 1)
    np.testing.assert_array_equal(second(left[:, ::2]), values[:, ::2] * 2 + 1)
    first(values * 0)  # what was left is its own memory
    np.testing.assert_array_equal(second(left), values * 2 + 1)
    with pytest.raises(InputTypeError, match="on a GPU"):
        second(left[0])


def test_what_is_left_on_the_device_is_given_back(device, place):
    gc.collect()
    place.synchronize()
    nothing = place.memory_in_use()
    x = T.vector("x")
    function = sc.compile([x], sc.Out(x * 2, on_device=True), device=device)
    values = np.ones(1 << 16, np.float32)
    left = [function(values)]
    before = place.memory_in_use()
    left += [function(values * number) for number in range(5)]
    assert place.memory_in_use() >= before + 5 * values.nbytes
    view = left[3][5:]
    del left[1:]
    gc.collect()
    assert place.memory_in_use() <= before + (1 + MOST_KEPT) * values.nbytes + 512
    for _ in range(4):
        function(values * 50)
    assert float(view[0]) == 4  # what somebody holds is not written
    del function, left, view
    gc.collect()
    place.synchronize()
    assert place.memory_in_use() == nothing


def test_results_that_are_let_go_use_the_same_memory_and_what_was_recorded(device, place):
    x, y = T.vector("x"), T.vector("y")
    step = sc.compile([x, y], sc.Out(T.exp(x) * 0 + x + y, on_device=True), device=device)
    one = sc.compile([x], sc.Out(x * 1, on_device=True), device=device)
    value, ones, addresses = one(np.zeros(300, np.float32)), one(np.ones(300, np.float32)), set()
    for _ in range(12):
        value = step(value, ones)
        addresses.add(place.lent(value).buffer.address)
    assert float(value[7]) == 12
    assert len(addresses) == 2


def test_two_emulators_are_two_devices():
    one, other = find_device("emulator"), find_device("emulator:1")
    assert one is not other
    x = T.vector("x")
    state = sc.shared(np.zeros(3, np.float32), name="state")
    on_one, on_other = (sc.compile([x], [sc.Out(x * 2, on_device=True)], updates=[(state, state + x)], device=name)
                        for name in ("emulator", "emulator:1"))
    (left,) = on_one(np.ones(3, np.float32))
    (right,) = on_other(left)  # from one device to the other
    np.testing.assert_array_equal(right, 4)
    np.testing.assert_array_equal(state.get_value(), 3)
    assert other.lent(right).buffer.home is other


@pytest.mark.gpu
class TestOtherLibraries:
    """Arrays that lie on the GPU, in and out."""

    @pytest.fixture(autouse=True)
    def cupy(self):
        try:
            return find_device("cuda").cupy
        except BackendError as error:
            pytest.skip(" ".join(str(error).split()))

    def test_cupy_arrays_in_any_stream(self, cupy):
        x = T.matrix("x")
        function = sc.compile([x], sc.Out(x * 2, on_device=True), device="cuda")
        with cupy.cuda.Stream(non_blocking=True):
            values = cupy.arange(1 << 20, dtype=cupy.float32).reshape(1024, 1024)
            for _ in range(5):
                result = function(values)
                values += 1
            cupy.testing.assert_array_equal(result, (values - 1) * 2)

    def test_torch_tensors(self, cupy):
        torch = pytest.importorskip("torch", reason="PyTorch is not installed")
        if not torch.cuda.is_available():
            pytest.skip("this PyTorch has no CUDA")
        x = T.matrix("x")
        function = sc.compile([x], sc.Out(x * 2, on_device=True), device="cuda")
        tensor = torch.arange(12, dtype=torch.float32, device="cuda").reshape(3, 4)
        result = function(tensor.T)
        back = torch.from_dlpack(result)
        assert back.data_ptr() == result.data.ptr
        assert torch.equal(back, tensor.T * 2)
        assert hasattr(result, "__cuda_array_interface__")
        with pytest.raises(InputTypeError):
            function(tensor.requires_grad_())
