"""Epilogues over whole vectors of channels: each operation's answer, NaN, infinities and limits, against NumPy."""
from __future__ import annotations

import numpy as np
import pytest
from kernel_runner import run_kernel

from symconv.codegen.conv_blocked import ConvBlocked
from symconv.codegen.vector_printer import print_in_vectors
from symconv.ops.conv_problem import ConvProblem
from symconv.ops.convolution import Conv
from symconv.ops.epilogue import Epilogue
from symconv.ops.layout import array_from_blocked
from symconv.ops.scalar import Instruction, ScalarProgram
from symconv.target import Target

VALUES = [np.nan, -np.inf, np.inf, -7.0, -1.5, -0.0, 0.0, 0.25, 2.5, 6.0, 6.5, 1e30, -1e30, 1e-40, 3.0, -2.0]


def _program(dtype: str, op: str, *limits: float) -> ScalarProgram:
    """`op` of the sum, and of constants."""
    constants = [Instruction("constant", (), dtype, limit) for limit in limits]
    return ScalarProgram((dtype,), (*constants, Instruction(op, tuple(range(1 + len(limits))), dtype)), (1 + len(limits),))


def _run(program: ScalarProgram, dtype: str, lanes: int) -> np.ndarray:
    """The program of VALUES, as the epilogue of a 1x1 convolution of one channel that multiplies by 1."""
    suffix, channels = ("f32" if dtype == "float32" else "f64"), len(VALUES)
    conv = ConvProblem.parse(f"fprop n1 c1 h3 w5 k{channels} r1 s1 {suffix} nchw>nchw{lanes}c")
    image, filters = np.ones((1, 1, 3, 5), dtype), np.array(VALUES, dtype).reshape(-1, 1, 1, 1)
    op = Conv(conv.kind, conv.spec, Epilogue(program, ()), layout=conv.layout)
    with np.errstate(all="ignore"):
        (found,) = run_kernel(ConvBlocked(), op, image, filters, threads=1,
                              target=Target(threads=1, vector_bytes=lanes * np.dtype(dtype).itemsize))
    result = array_from_blocked(found, lanes)
    np.testing.assert_array_equal(result, np.broadcast_to(result[:, :, :1, :1], result.shape))  # every pixel is the same
    return result[0, :, 1, 2]


CASES = [("clip", (0.0, 6.0)), ("clip", (-1.5, 2.5)), ("clip", (3.0, 2.0)), ("maximum", (0.25,)), ("minimum", (-1.5,)),
         ("relu", ()), ("neg", ()), ("square", ()), ("add", (0.1,)), ("sub", (0.1,)), ("mul", (-3.0,)), ("true_div", (0.0,))]
WANTED = {"clip": lambda x, low, high: np.minimum(np.maximum(x, low), high), "maximum": np.maximum, "minimum": np.minimum,
          "relu": lambda x: np.where(x <= 0, 0, x), "neg": np.negative, "square": np.square, "add": np.add, "sub": np.subtract,
          "mul": np.multiply, "true_div": np.true_divide}


@pytest.mark.parametrize(("op", "limits", "dtype", "lanes"), [
    *((*case, *kind) for case in CASES for kind in (("float32", 8), ("float32", 4), ("float64", 4))),
    ("clip", (-1.5, 2.5), "float32", 16), ("relu", (), "float64", 8)])  # of AVX-512, which compilers take long for elsewhere
def test_each_operation(op: str, limits: tuple[float, ...], dtype: str, lanes: int) -> None:
    program = _program(dtype, op, *limits)
    assert print_in_vectors(program, ["sum"], dtype) is not None
    with np.errstate(all="ignore"):
        wanted = WANTED[op](np.array(VALUES, dtype), *(np.dtype(dtype).type(limit) for limit in limits))
    np.testing.assert_array_equal(_run(program, dtype, lanes), wanted)


def test_other_operations_stay_with_single_lanes() -> None:
    """No vector form: a function of the library, another dtype, a limit that may be NaN itself."""
    program = _program("float32", "tanh")
    assert print_in_vectors(program, ["sum"], "float32") is None
    np.testing.assert_allclose(_run(program, "float32", 8), np.tanh(np.array(VALUES, "float32")), rtol=1e-6)
    body = (Instruction("cast", (1,), "float32"), Instruction("add", (0, 2), "float32"))
    mixed = ScalarProgram(("float32", "float64"), body, (3,))
    assert print_in_vectors(mixed, ["sum", "x"], "float32") is None
    two = ScalarProgram(("float32", "float32"), (Instruction("maximum", (0, 1), "float32"),), (2,))
    assert print_in_vectors(two, ["sum", "x"], "float32") is None
    assert print_in_vectors(_program("float32", "maximum", np.nan), ["sum"], "float32") is None
