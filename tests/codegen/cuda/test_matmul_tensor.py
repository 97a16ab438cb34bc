"""Matrix products on tensor cores, on the emulator, against float64."""
from __future__ import annotations

import numpy as np
import pytest
from cuda_launching import TARGET, operand_of, run

from symconv.codegen.cuda.matmul import MatMulTiles
from symconv.codegen.cuda.matmul_tensor import MatMulTensor
from symconv.codegen.kernel import Operand, Problem
from symconv.config import config
from symconv.ops.linalg import MatMul
from symconv.target import Target

IMPLEMENTATION = MatMulTensor()


def normal(*shape, dtype="float16"):
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(dtype)


def check(a, b, checked=True, rtol=2e-3):
    (found,) = run(IMPLEMENTATION, MatMul(), a, b, checked=checked)
    wanted = a.astype(np.float64) @ b.astype(np.float64)
    np.testing.assert_allclose(found, wanted, rtol=rtol, atol=rtol * np.sqrt(a.shape[-1]))


@pytest.mark.parametrize("checked", [True, False])
@pytest.mark.parametrize(("rows", "depth", "columns"), [(64, 32, 64), (70, 72, 88), (1, 8, 8), (130, 40, 16), (16, 8, 200)])
def test_sizes(rows, depth, columns, checked):
    check(normal(rows, depth), normal(depth, columns), checked)


@pytest.mark.parametrize("layout", ["nn", "nt", "tn", "tt"])
def test_layouts(layout):
    a = normal(72, 96) if layout[0] == "n" else normal(96, 72).T
    b = normal(96, 80) if layout[1] == "n" else normal(80, 96).T
    check(a, b)
    check(a[:40, 8:48], b[8:48, 16:72])  # parts of larger matrices
    if layout == "nt":
        check(a, b[:, :77])  # an odd number of columns


@pytest.mark.parametrize("layout", ["nn", "tt"])
def test_large_tiles(layout):
    a = normal(1500, 40) if layout == "nn" else normal(40, 1504).T
    b = normal(40, 1536) if layout == "nn" else normal(1536, 40).T
    check(a, b, checked=False)


def test_large_tiles_checked(monkeypatch):
    monkeypatch.setattr("symconv.codegen.cuda.matmul_tensor._BLOCKS_WANTED", 0)
    check(normal(136, 72), normal(72, 144))


def test_misaligned_operands_are_copied_element_by_element():
    raw = normal(64 * 40 + 1)
    check(raw[1:].reshape(64, 40), normal(40, 64))


def test_batches_with_broadcasting():
    check(normal(3, 1, 16, 24), normal(1, 2, 24, 32))


@pytest.mark.parametrize("layout", ["nn", "tt"])
def test_blocks_go_on_with_rows_and_pairs_beyond_the_grid(layout, monkeypatch):
    monkeypatch.setattr("symconv.codegen.cuda.matmul_tensor._MOST_GRID", 2)
    a, b = normal(5, 264, 48), normal(5, 48, 16)
    if layout == "tt":
        a, b = (np.ascontiguousarray(each.swapaxes(1, 2)).swapaxes(1, 2) for each in (a, b))
    check(a, b)


def test_tf32_where_it_is_asked_for():
    a, b = normal(72, 36, dtype="float32"), normal(36, 68, dtype="float32")
    problem = Problem(MatMul(), (operand_of(a), operand_of(b)), (Operand.contiguous("float32", (72, 68)),))
    assert "float32 means float32" in (IMPLEMENTATION.refuse(problem, TARGET) or "")
    with config.change(precision="tf32"):
        for left, right in ((a, b), (np.asfortranarray(a), np.asfortranarray(b))):
            check(left, right, rtol=1e-3)
        check(a, b, checked=False, rtol=1e-3)


def test_bfloat16():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    check(normal(64, 48).astype(ml_dtypes.bfloat16), normal(48, 64).astype(ml_dtypes.bfloat16), rtol=1e-2)


def test_what_is_refused():
    def reason(dtype, arch, *shapes):
        operands = [Operand.contiguous(dtype, shape) for shape in shapes]
        return IMPLEMENTATION.refuse(Problem(MatMul(), tuple(operands[:2]), (operands[2],)), Target(device="cuda", arch=arch)) or ""

    square = ((64, 64),) * 3
    assert reason("float16", 75, *square) == ""
    assert "needs sm_80" in reason("bfloat16", 75, *square)
    assert "no float64" in reason("float64", 90, *square)
    assert "the second factor has no rows" in reason("float16", 90, (8, 16), (16, 9), (8, 9))


def test_it_is_expected_to_be_faster_than_cuda_cores():
    operand = Operand.contiguous("float16", (256, 256))
    problem = Problem(MatMul(), (operand, operand), (operand,))
    assert IMPLEMENTATION.estimate(problem, TARGET) < MatMulTiles().estimate(problem, TARGET)
