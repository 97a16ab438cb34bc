"""Every scalar operation on every dtype it takes, compiled, against NumPy and SciPy, special values included."""
from __future__ import annotations

import numpy as np
import pytest
import scipy.special
from kernel_runner import run_kernel

from symconv import dtypes
from symconv.codegen.elementwise import GeneratedElementwise
from symconv.ops.elementwise import Elementwise
from symconv.ops.lowered.fused_elementwise import FusedElementwise
from symconv.ops.scalar import SCALAR_OPS, Instruction, ScalarProgram

NUMPY_DTYPES = [name for name in dtypes.DTYPES if name != "bfloat16"]
C_KERNEL = GeneratedElementwise()


def special_values(dtype):
    """Values where something may go wrong."""
    if dtype == "bool":
        return np.array([False, True])
    if dtypes.is_integer(dtype):
        limits = np.iinfo(dtype)
        edges = [limits.min, limits.min + 1, limits.max - 1, limits.max, 0, 1, 2, 3, 7, 100]
        return np.array(edges + ([-1, -2, -3, -7, -100] if limits.min < 0 else []), dtype)
    limits = np.finfo(dtype)
    sizes = [0.0, limits.smallest_subnormal, limits.tiny, 1e-3, 0.3, 0.5, 1.0, 1.5, 2.5, 3.0, 88.0, 127.5, 3e4, limits.max,
             np.inf]
    return np.array(sizes + [-size for size in sizes] + [np.nan], dtype)


def grids(dtype, arity, rng):
    """Arguments: all combinations of special values, then random ones."""
    special = special_values(dtype)
    if arity == 3:
        special = special[rng.permutation(len(special))[:12]]
    mesh = [axis.ravel() for axis in np.meshgrid(*[special] * arity)]
    kind = dtypes.kind(dtype)
    if kind == "f":
        random = [(rng.standard_normal(500) * 10.0 ** rng.integers(-3, 4, 500)).astype(dtype) for _ in range(arity)]
    else:
        low, high = (0, 2) if kind == "b" else (max(np.iinfo(dtype).min, -200), min(np.iinfo(dtype).max, 200))
        random = [rng.integers(low, high, 500).astype(dtype) for _ in range(arity)]
    return [np.concatenate(pair) for pair in zip(mesh, random, strict=True)]


def expected(name, arguments, dtype):
    """NumPy's answer; for transcendental functions of float32 and float16 computed in float64."""
    wide = arguments
    if dtypes.is_float(dtype) and (dtype == "float16" or name not in ("floor_div", "mod", "sub", "add", "mul", "square")):
        wide = [argument.astype(np.float64) for argument in arguments]
    with np.errstate(all="ignore"):
        if name == "erf":
            return scipy.special.erf(wide[0])
        if name == "sigmoid":
            return scipy.special.expit(wide[0])
        if name == "softplus":
            return np.logaddexp(0.0, wide[0])
        if name == "rsqrt":
            return 1 / np.sqrt(wide[0])
        if name == "reciprocal":
            return 1 / wide[0]
        if name == "pow" and not dtypes.is_float(dtype):
            return np.array([integer_power(int(a), int(b), arguments[0].dtype) for a, b in zip(*arguments, strict=True)])
        return SCALAR_OPS[name].numpy(*wide)


def integer_power(base, exponent, dtype):
    """Python's power, wrapped to the dtype; a negative exponent rounds towards zero."""
    bits = 8 * dtype.itemsize
    inverse = {1: 1, -1: 1 if exponent % 2 == 0 else -1}.get(base, 0)
    value = inverse if exponent < 0 else pow(base, exponent, 1 << bits)
    return np.array(value % (1 << bits), f"u{dtype.itemsize}").astype(dtype)


def ulps(result, exact, dtype):
    """Error in units of the last place of the exact value rounded to dtype; 0 where both are the same special value."""
    with np.errstate(all="ignore"):
        rounded = exact.astype(dtype)
        error = np.abs(result - exact.astype(np.longdouble)) / np.spacing(np.abs(rounded)).astype(np.longdouble)
    same = (result == rounded) | (np.isnan(result) & np.isnan(rounded))
    return np.where(same, 0, np.where(np.isfinite(error), error, np.inf)).astype(float)


def all_operations(dtype, arity):
    """One program with an output for every operation of this arity on this dtype, and their names."""
    names = [name for name, row in SCALAR_OPS.items() if name not in ("cast", "where") and row.arity == arity
             and dtypes.kind(dtype) in row.kinds]
    body = tuple(Instruction(name, tuple(range(arity)), "bool" if SCALAR_OPS[name].result == "bool" else dtype)
                 for name in names)
    return names, ScalarProgram((dtype,) * arity, body, tuple(range(arity, arity + len(body))))


@pytest.mark.filterwarnings("ignore:.*encountered in:RuntimeWarning")
@pytest.mark.parametrize("arity", [1, 2, 3])
@pytest.mark.parametrize("dtype", NUMPY_DTYPES)
def test_scalar_operations(dtype, arity):
    """All operations of one arity are outputs of one kernel; the message names the operation and its arguments."""
    names, program = all_operations(dtype, arity)
    arguments = grids(dtype, arity, np.random.default_rng(7))
    failures = []
    if not names:
        return
    for name, result in zip(names, run_kernel(C_KERNEL, FusedElementwise(program), *arguments), strict=True):
        exact = np.asarray(expected(name, arguments, dtype))
        if SCALAR_OPS[name].result == "bool" or not dtypes.is_float(dtype):
            wrong = np.flatnonzero(result != exact.astype(result.dtype))
        else:
            if name == "logaddexp":  # its sum may cancel: it is as exact as its parts
                close = np.abs(result - exact) <= 3 * np.spacing(np.abs(arguments[0]) + 1)
                result = np.where(close, exact.astype(dtype), result)
            wrong = np.flatnonzero(ulps(result, exact, dtype) > (1.0 if dtype == "float16" else 3.0))
        failures += [f"{name}({', '.join(str(a[i]) for a in arguments)}) = {result[i]}, not {exact[i]}" for i in wrong[:4]]
    assert not failures, "\n".join(failures)


@pytest.mark.parametrize("source", NUMPY_DTYPES)
def test_casts(source):
    """Casts between all dtypes as NumPy does them where the value fits, and without a signal where not."""
    values = special_values(source)
    body = tuple(Instruction("cast", (0,), target) for target in NUMPY_DTYPES)
    program = ScalarProgram((source,), body, tuple(range(1, 1 + len(body))))
    for target, result in zip(NUMPY_DTYPES, run_kernel(C_KERNEL, FusedElementwise(program), values), strict=True):
        with np.errstate(all="ignore"):
            wanted = values.astype(target)
            fits = np.ones(values.shape, bool)
            if dtypes.is_float(source) and dtypes.is_integer(target):
                limits = np.iinfo(target)
                wide = np.trunc(values.astype(np.longdouble))
                fits = (wide >= limits.min) & (wide <= limits.max)
        np.testing.assert_array_equal(result[fits], wanted[fits], err_msg=f"{source} to {target}")


@pytest.mark.parametrize("dtype", NUMPY_DTYPES)
def test_where(dtype):
    """The condition is bool, the branches are any dtype; NaN and infinities in the branch not taken do no harm."""
    values = special_values(dtype)
    a, b = values, values[::-1].copy()
    condition = np.arange(len(values)) % 3 == 0
    (result,) = run_kernel(C_KERNEL, Elementwise("where"), condition, a, b)
    np.testing.assert_array_equal(result, np.where(condition, a, b))


FLOAT32_FUNCTIONS = {"exp": np.exp, "exp2": np.exp2, "expm1": np.expm1, "log": np.log, "log2": np.log2, "log10": np.log10,
                     "log1p": np.log1p, "tanh": np.tanh, "erf": scipy.special.erf, "sigmoid": scipy.special.expit}


@pytest.mark.parametrize("name", FLOAT32_FUNCTIONS)
def test_float32_functions_are_accurate_everywhere(name):
    """Every 5,003rd float32 there is, denormals and NaN included: within what the README says."""
    x = np.arange(0, 2**32, 5003, dtype=np.uint64).astype(np.uint32).view(np.float32)
    (result,) = run_kernel(C_KERNEL, Elementwise(name), x)
    with np.errstate(all="ignore"):
        exact = FLOAT32_FUNCTIONS[name](x.astype(np.float64))
    error = ulps(result, exact, np.float32)
    worst = int(np.argmax(error))
    bound = 1.0 if name in ("exp", "log") else 2.5
    assert error[worst] <= bound, f"{name}({x[worst]!r}) = {result[worst]!r}, exactly {exact[worst]!r}: {error[worst]:.2f} ulp"


@pytest.mark.parametrize("name", ["exp", "tanh", "log1p", "sigmoid", "relu", "sign", "floor", "round", "expm1", "erf"])
def test_zero_keeps_its_sign_as_in_numpy(name):
    """-0.0 in: the sign of the result is NumPy's."""
    zeros = np.array([0.0, -0.0], np.float32)
    (result,) = run_kernel(C_KERNEL, Elementwise(name), zeros)
    exact = np.array([0.0, 0.0]) if name == "relu" else np.asarray(expected(name, [zeros], "float32"))
    np.testing.assert_array_equal(np.signbit(result), np.signbit(exact))


def test_bfloat16_rounds_to_nearest_even():
    """bfloat16 in memory, float in between: every finite bfloat16 survives, and sums round as ml_dtypes rounds them."""
    ml_dtypes = pytest.importorskip("ml_dtypes")
    every = np.arange(2**16, dtype=np.uint16).view(ml_dtypes.bfloat16)
    (same,) = run_kernel(C_KERNEL, Elementwise("mul"), every, np.ones((), ml_dtypes.bfloat16))
    np.testing.assert_array_equal(same.astype(np.float32), every.astype(np.float32))
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(5000).astype(ml_dtypes.bfloat16) for _ in range(2))
    (result,) = run_kernel(C_KERNEL, Elementwise("add"), a, b)
    np.testing.assert_array_equal(result.astype(np.float32), (a.astype(np.float32) + b.astype(np.float32)).astype(
        ml_dtypes.bfloat16).astype(np.float32))


def test_float16_storage_is_exact():
    """Every float16 survives a trip through float, and floats round to float16 as NumPy rounds them."""
    every = np.arange(2**16, dtype=np.uint16).view(np.float16)
    (wide,) = run_kernel(C_KERNEL, Elementwise("cast", "float32"), every)
    np.testing.assert_array_equal(wide, every.astype(np.float32))
    x = np.arange(0, 2**32, 7919, dtype=np.uint64).astype(np.uint32).view(np.float32)
    (narrow,) = run_kernel(C_KERNEL, Elementwise("cast", "float16"), x)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(narrow, x.astype(np.float16))
