"""The depthwise convolution kernels against loops over the kernel's elements in float64, on corner shapes, with epilogues."""
from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from conv_oracle import check_elements, check_epilogue, check_threads, expected, op_and_inputs, operands
from kernel_runner import make_problem, run_kernel

from symconv.codegen.conv_depthwise import ConvDepthwise, ConvWgradDepthwise
from symconv.codegen.convolution import CONV_IMPLEMENTATIONS
from symconv.ops.conv_problem import ConvProblem
from symconv.ops.epilogue import Epilogue
from symconv.ops.scalar import Instruction, ScalarProgram
from symconv.ops.spec import Kind
from symconv.target import Target

PROBLEMS = """
    n1 c1 h1 w1 k1 r1 s1
    n1 c2 h1 w1 k2 r3 s3 p1 g2
    n2 c8 h10 w10 k8 r3 s3 p1 g8
    n2 c3 h23 w41 k3 r3 s3 p1 g3
    n2 c3 h9 w5 k6 r3 s3 p1 g3 flip
    n2 c4 h13 w21 k4 r5 s5 p2 g4
    n1 c2 h16 w33 k2 r7 s7 p3 g2
    n2 c2 h19 w37 k2 r3 s3 u2 p1 g2
    n2 c2 h18 w40 k4 r5 s5 u2 p2 g2 flip
    n1 c2 h17 w30 k2 r3 s3 u3 p2:0x0:1 g2
    n1 c2 h14 w28 k2 r3 s4 u2x1 p0:3x2:0 g2
    n1 c2 h8 w9 k2 r3 s3 p3:5x4:3 g2
    n1 c2 h20 w35 k2 r3 s3 l2x3 p2x4 g2
    n1 c2 h20 w35 k2 r3 s3 u2 l3x2 p2x3 g2
    n1 c2 h12 w12 k2 r2 s2 u4 g2
    n2 c3 w50 k6 s5 l3 p6:0 g3
    n3 c2 w100 k2 s9 u2 p4 g2 flip
    n1 c2 w33 k2 s13 p6 g2
    n0 c3 h8 w8 k3 r3 s3 p1 g3
    n2 c3 h6 w6 k0 r3 s3 p1 g3
    n2 c3 h6 w11 k3 r1 s1 g3
    n1 c3 h6 w11 k3 r1 s1 u2 p1 g3
    n9 c1 h30 w30 k1 r3 s3 p1
""".strip().splitlines()
VECTOR_BYTES = Target().vector_bytes


def _implementation(kind: Kind) -> ConvDepthwise | ConvWgradDepthwise:
    return ConvWgradDepthwise() if kind is Kind.WGRAD else ConvDepthwise()


def _check(text: str, threads: int, vector_bytes: int = VECTOR_BYTES) -> None:
    conv = ConvProblem.parse(text)
    check_elements(_implementation(conv.kind), conv, Target(threads=threads, vector_bytes=vector_bytes))


@pytest.mark.parametrize("sizes", [line.strip() for line in PROBLEMS])
@pytest.mark.parametrize("kind", ["fprop", "dgrad", "wgrad"])
def test_against_loops(kind: str, sizes: str) -> None:
    _check(f"{kind} {sizes} f32", threads=2)


@pytest.mark.parametrize("sizes", ["n2 c3 h23 w41 k3 r3 s3 p1 g3", "n2 c2 h18 w19 k4 r5 s5 u2 p2 g2 flip", "n1 c2 w3 k2 s5 p4 g2"])
@pytest.mark.parametrize("kind", ["fprop", "dgrad", "wgrad"])
def test_doubles_and_narrow_vectors(kind: str, sizes: str) -> None:
    _check(f"{kind} {sizes} f64", threads=1)
    _check(f"{kind} {sizes} f32", threads=1, vector_bytes=16)


@pytest.mark.parametrize("text", ["fprop n3 c5 h40 w40 k5 r3 s3 p1 g5 f32", "dgrad n3 c5 h41 w40 k5 r3 s3 p1 u2 g5 f32",
                                  "wgrad n5 c2 h90 w40 k2 r3 s3 g2 f32", "wgrad n1 c1 h90 w40 k1 r3 s3 f32"])
def test_threads_do_not_change_bits(text: str) -> None:
    conv = ConvProblem.parse(text)
    check_threads(_implementation(conv.kind), conv)


@pytest.mark.parametrize("text", ["fprop n2 c3 h9 w21 k6 r3 s3 p1 g3 f32", "dgrad n2 c3 h9 w21 k3 r3 s3 u2 p1 g3 f32",
                                  "dgrad n1 c2 h9 w10 k4 r3 s3 u3 g2 f32", "wgrad n2 c3 h9 w11 k3 r3 s3 p1 g3 f32"])
def test_epilogue(text: str) -> None:
    conv = ConvProblem.parse(text)
    check_epilogue(_implementation(conv.kind), conv)


@pytest.mark.parametrize("width", [3, 5, 8, 13, 16, 21, 39])
@pytest.mark.parametrize("kind", ["fprop", "dgrad"])
def test_epilogue_by_channel_at_the_ends_of_rows(kind: str, width: int) -> None:
    conv = ConvProblem.parse(f"{kind} n2 c3 h9 w{width} k3 r3 s3 u2 p1 g3 f32")
    x, w, y = operands(conv)
    wanted, magnitude = expected(conv, x, w, y)
    epilogue = Epilogue(ScalarProgram((conv.dtype,) * 2, (Instruction("add", (0, 1), conv.dtype),), (2,)), ("channel",))
    bias = np.arange(1, 4, dtype=conv.dtype)
    op, inputs = op_and_inputs(conv, x, w, y, epilogue)
    (found,) = run_kernel(_implementation(conv.kind), op, *inputs, bias, threads=2)
    assert (np.abs(found - (wanted + bias.reshape(1, -1, 1, 1))) <= 3e-6 * (magnitude + 4)).all()


@pytest.mark.parametrize("kind", ["fprop", "dgrad", "wgrad"])
def test_what_is_not_a_number_stays_where_the_taps_reach(kind: str) -> None:
    conv = ConvProblem.parse(f"{kind} n1 c3 h11 w19 k3 r3 s3 p1 g3 f32")
    x, w, y = operands(conv)
    x[0, 1, 4, 7] = y[0, 1, 4, 7] = np.nan  # the planes beside it, and rows that masked vectors read too, stay clean
    op, inputs = op_and_inputs(conv, x, w, y)
    wanted, _ = expected(conv, x, w, y)
    (found,) = run_kernel(_implementation(conv.kind), op, *inputs, threads=1)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(wanted))


_AT_THE_EDGE_OF_MEMORY = """
import ctypes, mmap
import numpy as np
from conv_oracle import TOLERANCE, expected, op_and_inputs, operands
from kernel_runner import run_kernel
from symconv.ops.conv_problem import ConvProblem
from test_conv_depthwise import PROBLEMS, _implementation

def at_the_edge(array, behind):
    size = max(1, -(-array.nbytes // mmap.PAGESIZE)) * mmap.PAGESIZE
    area = np.frombuffer(mmap.mmap(-1, size + 2 * mmap.PAGESIZE), np.uint8)
    for start in (0, size + mmap.PAGESIZE):  # pages that must not be touched
        assert ctypes.CDLL(None).mprotect(ctypes.c_void_p(area.ctypes.data + start), mmap.PAGESIZE, 0) == 0
    start = mmap.PAGESIZE + (size - array.nbytes if behind else 0)
    placed = area[start:start + array.nbytes].view(array.dtype).reshape(array.shape)
    placed[...] = array
    return placed

for kind in ("fprop", "dgrad", "wgrad"):
    for sizes in PROBLEMS:
        conv = ConvProblem.parse(f"{kind} {sizes.strip()} f32")
        x, w, y = operands(conv)
        wanted, magnitude = expected(conv, x, w, y)
        for behind in (False, True):
            op, inputs = op_and_inputs(conv, *(at_the_edge(array, behind) for array in (x, w, y)))
            (found,) = run_kernel(_implementation(conv.kind), op, *inputs, threads=1)
            assert (np.abs(found - wanted) <= TOLERANCE[conv.dtype] * magnitude).all(), conv
"""


@pytest.mark.skipif(sys.platform != "linux", reason="pages are protected by Linux's mprotect")
def test_nothing_beside_the_arrays_is_read() -> None:
    places = [str(Path(__file__).parent), str(Path(__file__).parents[1])]
    done = subprocess.run([sys.executable, "-c", f"import sys; sys.path[:0] = {places}\n{_AT_THE_EDGE_OF_MEMORY}"], check=False,
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("text", "reason"), [
    ("fprop n1 c4 h5 w5 k4 r3 s3 g2 f32", "one input channel in a group, not 2"), ("fprop n1 c2 h9 w9 k2 r8 s8 g2 f32", "64"),
    ("fprop n1 c2 d4 h5 w5 k2 t3 r3 s3 g2 f32", "not 3"), ("fprop n1 c2 h5 w5 k2 r3 s3 g2 f16", "float16"),
    ("wgrad n1 c4 h5 w5 k4 r3 s3 g2 f32", "one input channel in a group, not 2")])
def test_refusals_say_why(text: str, reason: str) -> None:
    conv = ConvProblem.parse(text)
    op, inputs = op_and_inputs(conv, *operands(conv))
    assert reason in (_implementation(conv.kind).refuse(make_problem(op, *inputs), Target()) or "")


@pytest.mark.parametrize("kind", ["fprop", "dgrad", "wgrad"])
def test_it_is_chosen_and_new_sizes_compile_nothing(kind: str) -> None:
    sources = set()
    for sizes in ("n1 c32 h14 w14 k32 g32", "n1 c576 h14 w14 k576 g576", "n1 c32 h56 w56 k32 g32", "n8 c16 h112 w112 k16 g16"):
        conv = ConvProblem.parse(re.sub(r"(g\d+)", r"r3 s3 p1 \1 f32", f"{kind} {sizes}"))
        op, inputs = op_and_inputs(conv, *operands(conv))
        problem, target = make_problem(op, *inputs), Target()
        asked = [each for each in CONV_IMPLEMENTATIONS if each.serves(op) and each.refuse(problem, target) is None]
        best = min(asked, key=lambda each: each.estimate(problem, target))
        assert best.name == _implementation(conv.kind).name
        sources.add(best.build(problem, target).source)
    assert len(sources) == 1
