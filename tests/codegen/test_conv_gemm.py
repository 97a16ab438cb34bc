"""How the implicit-GEMM convolution cuts its work, and the weights that it is given."""
from __future__ import annotations

import numpy as np
import pytest
from conv_oracle import op_and_inputs, operands
from kernel_runner import call_kernel, make_problem

from symconv.codegen.conv_common import make_geometry
from symconv.codegen.conv_gemm import _TASK_PANELS, ConvGemm, choose_tasks
from symconv.codegen.gemm_tile import make_tile
from symconv.ops.conv_problem import ConvProblem
from symconv.target import Target


@pytest.mark.parametrize("threads", [1, 2, 16])
@pytest.mark.parametrize("text", ["fprop n8 c64 h56 w56 k256 r1 s1 f32", "fprop n1 c960 h7 w7 k160 r1 s1 f32",
                                  "fprop n0 c3 h8 w8 k4 r3 s3 f32",
                                  "dgrad n2 c30 h57 w33 k7 r3 s3 u2x3 f32", "fprop n3 c64 h9 w9 k4096 r1 s1 f64"])
def test_tasks_fit_the_scratch(text: str, threads: int) -> None:
    """No task gets more panels than a thread has room for, and none is without rows."""
    conv = ConvProblem.parse(text)
    geometry, tile = make_geometry(conv), make_tile(conv.dtype, Target())
    columns, rows, _ = choose_tasks(geometry, tile, conv.kind, threads)
    pixels = geometry.pixels
    if conv.kind.value == "dgrad":
        phase = [-(-size // step) for size, step in zip(geometry.outside, geometry.stride, strict=True)]
        pixels = geometry.batch * int(np.prod(phase))
    assert -(-pixels // tile.columns) <= columns * _TASK_PANELS
    assert 1 <= rows <= max(1, geometry.rows // tile.rows + 1)


@pytest.mark.parametrize(("text", "shared"), [
    ("fprop n1 c64 h56 w56 k256 r1 s1 f32", False), ("fprop n1 c128 h28 w28 k512 r1 s1 f32", False),
    ("fprop n1 c2048 h7 w7 k512 r1 s1 f32", True), ("fprop n1 c256 h14 w14 k1024 r1 s1 f32", True)])
def test_panels_are_packed_first_only_where_they_are_few(text: str, shared: bool) -> None:
    """Many panels are shared out among two threads as they are; few are packed once for all parts of the rows."""
    conv = ConvProblem.parse(text)
    tasks = choose_tasks(make_geometry(conv), make_tile(conv.dtype, Target(vector_bytes=32)), conv.kind, 2)
    assert tasks.shared is shared
    assert tasks.rows > 1 or not shared


def test_tiles_of_weights_hold_each_weight_once() -> None:
    """FPROP and every phase of a strided DGRAD: the weights in another order."""
    for text in ("fprop n4 c35 h9 w9 k13 r3 s3 g1 f32", "dgrad n4 c13 h9 w9 k35 r3 s3 u2 f32",
                 "dgrad n9 c50 h7 w7 k70 r1 s1 g2 f32"):
        conv = ConvProblem.parse(text)
        op, inputs = op_and_inputs(conv, *operands(conv))
        (preparation,) = ConvGemm().prepare(make_problem(op, *inputs), Target(threads=2))
        weights = np.arange(np.prod(conv.w_shape), dtype=np.float32).reshape(conv.w_shape)
        (tiled,) = call_kernel(preparation.kernel, [weights], (preparation.result,))
        np.testing.assert_array_equal(np.sort(tiled), weights.ravel())
