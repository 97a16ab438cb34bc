"""Indexing kernels against NumPy's own indexing."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from kernel_runner import call_kernel, make_problem, run_kernel

from symconv.codegen.indexing import IMPLEMENTATIONS
from symconv.codegen.kernel import Kernel
from symconv.codegen.toolchain import build
from symconv.errors import IndexRangeError
from symconv.ops.basic_indexing import INPUT, IncSubtensor, Slice, Subtensor
from symconv.ops.integer_indexing import Gather, ScatterAdd, ScatterSet
from symconv.target import Target

Array = np.ndarray[Any, Any]
SUBTENSOR, INC, GATHER, SCATTER = (IMPLEMENTATIONS[op][0] for op in (Subtensor, IncSubtensor, Gather, ScatterAdd))
Q = INPUT
TWO_THREADS = Target(threads=2)


def scalar(value: int) -> Array:
    return np.array(value, "int64")


# (shape, pattern, the scalars in it, the same index for NumPy)
REGIONS = [
    ((7,), (Q,), (3,), np.s_[3]),
    ((7,), (Q,), (-7,), np.s_[-7]),
    ((7, 3), (Q, Slice()), (-1,), np.s_[-1]),
    ((4, 5, 6), (Slice(), Q, Slice()), (2,), np.s_[:, 2]),
    ((4, 5, 6), (Slice(Q, None), 1, Slice(None, Q, 2)), (-3, 5), np.s_[-3:, 1, :5:2]),
    ((9,), (Slice(Q, Q, Q),), (8, 1, -3), np.s_[8:1:-3]),
    ((9,), (Slice(None, None, Q),), (-2,), np.s_[::-2]),
    ((9,), (Slice(None, None, Q),), (4,), np.s_[::4]),
    ((9,), (Slice(None, Q, -1),), (-100,), np.s_[:-100:-1]),
    ((9,), (Slice(Q, Q),), (-100, 100), np.s_[-100:100]),
    ((9,), (Slice(Q, Q),), (6, 2), np.s_[6:2]),
    ((0, 3), (Slice(None, Q), Slice()), (5,), np.s_[:5]),
    ((3, 4), (Slice(None, None, -1), Slice(Q, None, -1)), (2,), np.s_[::-1, 2::-1]),
    ((2, 3, 4), (Q, -1, Q), (1, -4), np.s_[1, -1, -4]),
    ((2, 40000), (Q, Slice(None, Q)), (1, 39999), np.s_[1, :39999]),
    ((300, 200), (Slice(None, Q), Slice(None, None, 3)), (299,), np.s_[:299, ::3]),
]


def counted(shape: tuple[int, ...], dtype: str) -> Array:
    return np.arange(int(np.prod(shape))).reshape(shape).astype(dtype)


@pytest.mark.parametrize(("shape", "pattern", "scalars", "index"), REGIONS, ids=str)
def test_subtensor(shape: tuple[int, ...], pattern: Any, scalars: tuple[int, ...], index: Any) -> None:
    x = counted(shape, "float32")
    numbers = [scalar(value) for value in scalars]
    np.testing.assert_array_equal(run_kernel(SUBTENSOR, Subtensor(pattern), x, *numbers)[0], x[index])
    turned = counted(shape[::-1], "float32").T[::-1]
    np.testing.assert_array_equal(run_kernel(SUBTENSOR, Subtensor(pattern), turned, *numbers)[0], turned[index])


@pytest.mark.parametrize("mode", ["set", "add"])
@pytest.mark.parametrize(("shape", "pattern", "scalars", "index"), REGIONS[::2], ids=str)
def test_inc_subtensor(mode: Any, shape: tuple[int, ...], pattern: Any, scalars: tuple[int, ...], index: Any) -> None:
    x = counted(shape, "float32")
    numbers = [scalar(value) for value in scalars]
    region = x[index].shape
    broadcast = np.full(tuple(1 if axis == len(region) - 1 else size for axis, size in enumerate(region)), 7, "float32")
    turned = (counted(region, "float32") + 100).T.copy().T
    for y in (broadcast, turned):
        wanted = x.copy()
        wanted[index] = y if mode == "set" else wanted[index] + y
        np.testing.assert_array_equal(run_kernel(INC, IncSubtensor(pattern, mode), x, y, *numbers)[0], wanted)


@pytest.mark.parametrize("dtype", ["bool", "int8", "int16", "uint32", "int64", "float16", "float64"])
def test_dtypes(dtype: str) -> None:
    x = counted((6, 5), dtype)
    op, numbers = (Slice(None, Q), 1), [scalar(4)]
    np.testing.assert_array_equal(run_kernel(SUBTENSOR, Subtensor(op), x, *numbers)[0], x[:4, 1])
    y = np.ones(4, dtype)
    wanted = x.copy()
    wanted[:4, 1] = y
    np.testing.assert_array_equal(run_kernel(INC, IncSubtensor(op, "set"), x, y, *numbers)[0], wanted)
    add = IncSubtensor(op, "add")
    if dtype == "float16":
        assert INC.refuse(make_problem(add, x, y, *numbers), Target()) == "sums of float16 have no C type"
        return
    wanted = x.copy()
    wanted[:4, 1] += y
    np.testing.assert_array_equal(run_kernel(INC, add, x, y, *numbers)[0], wanted)


@pytest.mark.parametrize("index", [3, -4, 2**62, -2**63])
def test_an_index_outside_its_axis_is_an_error_that_names_it(index: int) -> None:
    x = counted((5, 3), "float32")
    with pytest.raises(IndexRangeError, match="an index is outside axis 1"):
        run_kernel(SUBTENSOR, Subtensor((Slice(), Q)), x, scalar(index))
    with pytest.raises(IndexRangeError, match="an index is outside axis 1"):
        run_kernel(INC, IncSubtensor((Slice(), Q), "set"), x, counted((5,), "float32"), scalar(index))
    with pytest.raises(IndexRangeError, match="an index is outside axis 1"):
        run_kernel(GATHER, Gather(2), x, np.array([0, 1]), np.array([0, index]))
    with pytest.raises(IndexRangeError, match="an index is outside axis 1"):
        run_kernel(SCATTER, ScatterAdd(2), x, np.ones(2, "float32"), np.array([0, 1]), np.array([index, 0]))


def test_a_value_that_does_not_fit_the_region_is_an_error() -> None:
    with pytest.raises(IndexRangeError, match="the value does not have the size of the region"):
        run_kernel(INC, IncSubtensor((Slice(Q),), "set"), counted((9,), "int64"), counted((4,), "int64"), scalar(3))


# (shape of x, index arrays)
INDICES = [
    ((6,), [np.array([0, 5, -1, -6, 2])]),
    ((6, 4), [np.array([[1, 1], [-2, 0]])]),
    ((6, 4), [np.array([1, 2, 2, 2]), np.array([0, -1, 3, 3])]),
    ((5, 4, 3), [np.array([[0], [4]]), np.array([[1, -1, 1]])]),
    ((5, 4, 3, 2), [np.array([[0], [4], [0]]), np.array([[1, -1, 1]])]),
    ((3, 4, 5), [np.zeros((0,), "int64")]),
    ((3, 0, 5), [np.array([1, 2])]),
    ((1,), [np.zeros((300,), "int64")]),
    ((3, 40000), [np.array([2, 0, 2])]),
    ((50, 8), [np.random.default_rng(0).integers(-50, 50, (3000,))]),
]


@pytest.mark.parametrize(("shape", "indices"), INDICES, ids=[str(shape) for shape, _ in INDICES])
def test_gather(shape: tuple[int, ...], indices: list[Array]) -> None:
    x = counted(shape, "int32")
    np.testing.assert_array_equal(run_kernel(GATHER, Gather(len(indices)), x, *indices)[0], x[tuple(indices)])
    rows = np.ascontiguousarray(x[::-1])[::-1]
    backward = [each[::-1].copy()[::-1] for each in indices]
    np.testing.assert_array_equal(run_kernel(GATHER, Gather(len(indices)), rows, *backward)[0], x[tuple(indices)])


@pytest.mark.parametrize("op", [ScatterAdd, ScatterSet])
@pytest.mark.parametrize(("shape", "indices"), INDICES, ids=[str(shape) for shape, _ in INDICES])
def test_scatter(op: Any, shape: tuple[int, ...], indices: list[Array]) -> None:
    x = counted(shape, "int64")
    region = x[tuple(indices)].shape
    full = counted(region, "int64") * 3 + 1
    repeated = counted(region[:1] + (1,) * (len(region) - 1), "int64") + 5
    for y in (full, repeated):
        wanted = x.copy()
        positions = [np.where(each < 0, each + size, each) for each, size in zip(indices, shape, strict=False)]
        values = np.broadcast_to(y, region)
        for place in np.ndindex(*np.broadcast_shapes(*(each.shape for each in positions))):
            target = tuple(int(np.broadcast_to(each, region[:each.ndim])[place]) for each in positions)
            wanted[target] = values[place] if op is ScatterSet else wanted[target] + values[place]
        for threads in (1, 3):
            found = run_kernel(SCATTER, op(len(indices)), x, y, *indices, target=Target(threads=threads))[0]
            np.testing.assert_array_equal(found, wanted)


def test_partly_broadcast_blocks_are_scattered() -> None:
    x, indices = counted((4, 3, 5), "float64"), np.array([1, 3, 1])
    y = counted((3, 1, 5), "float64")
    wanted = x.copy()
    np.add.at(wanted, indices, np.broadcast_to(y, (3, 3, 5)))
    np.testing.assert_array_equal(run_kernel(SCATTER, ScatterAdd(1), x, y, indices)[0], wanted)


def test_scatter_of_floats_has_the_same_bits_for_any_number_of_threads() -> None:
    generator = np.random.default_rng(3)
    x, indices = np.zeros((40,), "float32"), generator.integers(0, 40, 60000)
    y = generator.normal(size=60000).astype("float32")
    results = [run_kernel(SCATTER, ScatterAdd(1), x, y, indices, threads=2, target=Target(threads=threads))[0]
               for threads in (1, 2, 3)]
    wanted = np.zeros(40, "float32")
    np.add.at(wanted, indices, y)
    for result in results:
        np.testing.assert_array_equal(result, wanted)


def in_place(kernel: Kernel, arrays: list[Array]) -> None:
    """Call a kernel with its result in the memory of its first input."""
    import ctypes

    assert (0, 0) in kernel.in_place
    (built,) = build([kernel])
    workspace = np.empty(kernel.workspace_bytes, np.uint8)
    buffers = (ctypes.c_void_p * (len(arrays) + 2))(arrays[0].ctypes.data, *(each.ctypes.data for each in arrays),
                                                    workspace.ctypes.data)
    sizes = (ctypes.c_int64 * len(kernel.sizes))(*kernel.sizes)
    assert ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(built.address)(
        ctypes.addressof(buffers), ctypes.addressof(sizes)) == 0


def test_results_may_take_the_place_of_x() -> None:
    x, y = counted((5, 4), "float32"), np.ones((4,), "float32")
    wanted = x.copy()
    wanted[2] += 1
    op = IncSubtensor((Q, Slice()), "add")
    in_place(INC.build(make_problem(op, x, y, scalar(2)), TWO_THREADS), [x, y, scalar(2)])
    np.testing.assert_array_equal(x, wanted)
    indices, values = np.array([0, 0]), np.ones((2, 4), "float32")
    wanted[0] += 2
    in_place(SCATTER.build(make_problem(ScatterAdd(1), x, values, indices), TWO_THREADS), [x, values, indices])
    np.testing.assert_array_equal(x, wanted)


def test_a_slice_of_another_length_than_planned_is_refused_by_the_kernel() -> None:
    x = counted((9,), "float32")
    problem = make_problem(Subtensor((Slice(Q),)), x, scalar(4))
    with pytest.raises(IndexRangeError, match="size of the region"):
        call_kernel(SUBTENSOR.build(problem, TWO_THREADS), [x, scalar(6)], problem.outputs)
