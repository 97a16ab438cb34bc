"""Elementwise operations: values, dtypes, shapes and errors against NumPy."""
from __future__ import annotations

import numpy as np
import pytest
import scipy.special
from support import evaluate, variable_for

from symconv import dtypes
from symconv.config import config
from symconv.errors import ArgumentError, GraphTypeError, ShapeError
from symconv.graph import TensorType, Variable
from symconv.ops import elementwise as e
from symconv.ops.constants import as_variable, constant
from symconv.ops.scalar import SCALAR_OPS, Instruction, ScalarProgram

RNG = np.random.default_rng(1)
HARD = np.array([0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 1e30, -1e30, np.inf, -np.inf, np.nan])

FLOAT_FUNCTIONS = {
    "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1, "log": np.log, "log2": np.log2, "log10": np.log10, "log1p": np.log1p,
    "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x), "reciprocal": lambda x: 1 / x, "sin": np.sin, "cos": np.cos,
    "tan": np.tan, "arcsin": np.arcsin, "arccos": np.arccos, "arctan": np.arctan, "sinh": np.sinh, "cosh": np.cosh,
    "tanh": np.tanh, "erf": scipy.special.erf, "sigmoid": scipy.special.expit, "softplus": lambda x: np.logaddexp(0, x),
    "isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite, "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc,
    "round": np.round, "neg": np.negative, "abs": np.abs, "sign": np.sign, "square": np.square,
    "relu": lambda x: np.where(np.isnan(x), x, np.maximum(x, 0)),
}
BINARY = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "true_div": np.true_divide, "floor_div": np.floor_divide,
    "mod": np.mod, "maximum": np.maximum, "minimum": np.minimum, "eq": np.equal, "neq": np.not_equal, "lt": np.less,
    "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal, "pow": np.power, "arctan2": np.arctan2,
    "logaddexp": np.logaddexp,
}


def value_of(variable):
    return evaluate([variable])[0]


@pytest.mark.parametrize("name", FLOAT_FUNCTIONS)
def test_unary_functions_on_hard_values(name):
    with np.errstate(all="ignore"):
        wanted = FLOAT_FUNCTIONS[name](HARD)
    x = variable_for(HARD)
    result = getattr(e, name)(x)
    found = evaluate([result], {x: HARD})[0]
    assert result.type == TensorType(wanted.dtype.name, HARD.shape)
    np.testing.assert_allclose(found, wanted, rtol=1e-14)


@pytest.mark.parametrize("name", BINARY)
def test_binary_functions_on_all_pairs_of_hard_values(name):
    a, b = HARD[:, None], HARD[None, :]
    with np.errstate(all="ignore"):
        wanted = BINARY[name](a, b)
    found = value_of(getattr(e, name)(a, b))
    assert found.dtype == wanted.dtype
    np.testing.assert_allclose(found, wanted, rtol=1e-14)


@pytest.mark.parametrize("dtype", dtypes.INTEGERS)
@pytest.mark.parametrize("name", ["add", "sub", "mul", "floor_div", "mod", "maximum", "minimum", "lt", "eq"])
def test_integer_arithmetic_wraps_and_divides_as_numpy(name, dtype):
    limits = np.iinfo(dtype)
    values = np.array([limits.min, limits.max, 0, 1, 3, 7, limits.max // 2], dtype)
    with np.errstate(all="ignore"):
        wanted = BINARY[name](values[:, None], values)
    found = value_of(getattr(e, name)(values[:, None], values))
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(found, wanted)


def test_floor_division_and_remainder_follow_python():
    a, b = np.array([7, -7, 7, -7]), np.array([3, 3, -3, -3])
    np.testing.assert_array_equal(value_of(as_variable(a) // b), [2, -3, -3, 2])
    np.testing.assert_array_equal(value_of(as_variable(a) % b), [1, 2, -2, -1])
    np.testing.assert_array_equal(value_of(as_variable(a) // 0), [0, 0, 0, 0])


def test_bool_arithmetic_is_logic_as_in_numpy():
    a, b = np.array([False, False, True, True]), np.array([False, True, False, True])
    for symbolic, wanted in ((as_variable(a) + b, a | b), (as_variable(a) * b, a & b), (as_variable(a) & b, a & b),
                             (as_variable(a) | b, a | b), (as_variable(a) ^ b, a ^ b), (~as_variable(a), ~a),
                             (e.abs(a), a), (e.square(a), np.square(a)), (e.floor_div(b, True), np.floor_divide(b, True)),
                             (e.mod(a, True), np.mod(a, True)), (e.pow(a, b), np.power(a, b))):
        found = value_of(symbolic)
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(found, wanted)
    for wrong in (lambda: as_variable(a) - b, lambda: -as_variable(a), lambda: e.sign(a)):
        with pytest.raises(GraphTypeError, match="bool"):
            wrong()


@pytest.mark.parametrize(("dtype", "number", "wanted"), [
    ("float32", 2, "float32"), ("float32", 0.5, "float32"), ("float16", 0.5, "float16"), ("float64", 1, "float64"),
    ("int8", 3, "int8"), ("uint8", 3, "uint8"), ("int64", 0.5, "float32"), ("bool", 1, "int64"), ("bool", 0.5, "float32"),
    ("int8", True, "int8"), ("float32", True, "float32")])
def test_python_numbers_take_the_dtype_of_the_other_side(dtype, number, wanted):
    x = Variable(TensorType(dtype, (2,)))
    assert e.add(x, number).dtype == wanted
    assert e.add(number, x).dtype == wanted


@pytest.mark.parametrize(("first", "second", "wanted"), [
    ("float32", "int64", "float32"), ("float32", "float64", "float64"), ("int8", "uint8", "int16"), ("bool", "int8", "int8"),
    ("float16", "int64", "float16"), ("bool", "float32", "float32"), ("uint64", "uint8", "uint64")])
def test_two_arrays_meet_as_the_table_says(first, second, wanted):
    a, b = np.ones(2, first), np.ones(2, second)
    assert e.add(a, b).dtype == e.add(b, a).dtype == e.where(True, a, b).dtype == wanted
    assert value_of(e.add(a, b)).dtype == wanted


@pytest.mark.parametrize(("dtype", "wanted"), [("bool", "float32"), ("int8", "float32"), ("uint16", "float32"),
                                               ("int32", "float64"), ("uint64", "float64"), ("float16", "float16")])
def test_quotients_and_functions_of_integers_are_floats(dtype, wanted):
    x = np.array([1, 1], dtype)
    for result in (e.true_div(x, x), e.exp(x), e.sqrt(x), e.arctan2(x, x), e.sigmoid(x)):
        assert result.dtype == wanted
    assert e.floor(x).dtype == dtype
    assert e.isnan(x).dtype == "bool"


def test_numpy_scalars_have_a_dtype_of_their_own():
    x = Variable(TensorType("float32", ()))
    assert (x * np.float64(2)).dtype == "float64"
    assert (np.float32(2) * x).dtype == "float32"
    assert (np.ones(3, "float64") * x).dtype == "float64"


def test_float_of_the_setting():
    x = Variable(TensorType("int32", ()))
    with config.change(floatX="float64"):
        assert (x * 0.5).dtype == as_variable(0.5).dtype == as_variable([0.5, 1]).dtype == "float64"
    assert (x * 0.5).dtype == as_variable(0.5).dtype == "float32"


def test_a_number_that_does_not_fit_is_an_error():
    x = Variable(TensorType("uint8", (2,)))
    for number in (256, -1, 2**70):
        with pytest.raises(GraphTypeError, match=r"fit|fits"):
            e.add(x, number)
    with pytest.raises(ArgumentError, match="negative power"):
        _ = x ** -1
    with pytest.raises(GraphTypeError, match="fits"):
        as_variable(2**70)


def test_integer_powers():
    base = np.array([-2, -1, 0, 1, 2, 3])
    np.testing.assert_array_equal(value_of(as_variable(base) ** 3), base**3)
    np.testing.assert_array_equal(value_of(e.pow(base, np.array(-1))), [0, -1, 0, 1, 0, 0])


def test_integer_powers_are_exact_in_every_dtype():
    """uint64 too, whose powers do not fit the mantissa of a float64."""
    for dtype in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"):
        most = int(np.iinfo(dtype).max)
        base, exponent = [most // 2, most - 2, 3, 7, 0], [1, 3, 39, 20, 0]
        found = value_of(e.pow(np.array(base, dtype), np.array(exponent, dtype)))
        assert found.dtype == dtype
        for value, number, power in zip(found.tolist(), base, exponent, strict=True):
            assert (value - number**power) % (1 << np.iinfo(dtype).bits) == 0, (dtype, number, power, value)


@pytest.mark.parametrize(("shapes", "wanted"), [
    ([(2, 3), (3,)], (2, 3)), ([(None, 3), (1,)], (None, 3)), ([(None,), (4,)], (4,)), ([(1,), (None,)], (None,)),
    ([(), (2, 1)], (2, 1)), ([(0, 3), (1, 3)], (0, 3)), ([(None, 1), (1, None)], (None, None)), ([(None,), (0,)], (0,))])
def test_static_shapes_broadcast(shapes, wanted):
    a, b = (Variable(TensorType("float32", shape)) for shape in shapes)
    assert e.add(a, b).type.shape == e.add(b, a).type.shape == wanted


def test_a_clash_of_sizes_names_both_shapes_and_the_line():
    a, b = Variable(TensorType("float32", (2, 3))), Variable(TensorType("float32", (2, 4)))
    with pytest.raises(ShapeError) as caught:
        e.add(a, b)
    for part in ("float32[2,3]", "float32[2,4]", "add", __file__):
        assert part in str(caught.value)
    with pytest.raises(ShapeError):
        e.add(Variable(TensorType("float32", (0,))), Variable(TensorType("float32", (2,))))


def test_empty_and_scalar_arrays():
    empty = np.zeros((0, 3), "float32")
    assert value_of(e.exp(empty) + 1).shape == (0, 3)
    assert value_of(as_variable(2.0) ** 3) == 8
    assert value_of(e.maximum(np.zeros((0, 1)), np.ones(4))).shape == (0, 4)


def test_where_takes_any_condition_and_never_mixes_dtypes():
    found = value_of(e.where(np.array([0, 2, np.nan]), np.array([1, 2, 3], "int8"), 7))
    np.testing.assert_array_equal(found, [7, 2, 3])
    assert found.dtype == "int8"
    with pytest.raises(GraphTypeError, match="condition"):
        e.Elementwise("where").infer(*[TensorType("float32", ())] * 3)


def test_clip_keeps_nan():
    np.testing.assert_array_equal(value_of(e.clip(HARD, -1, 2)), np.clip(HARD, -1, 2))
    assert e.clip(np.zeros(2, "int8"), 0, 5).dtype == "int8"


def test_casts_are_made_only_where_needed():
    x = Variable(TensorType("float32", (2,)))
    assert e.cast(x, "float32") is x
    assert [str(each.apply.op) for each in (e.cast(x, "int8"), e.cast(x, np.float64))] == ["cast{int8}", "cast{float64}"]
    assert all(each.apply is None for each in e.add(x, 1).apply.inputs)
    np.testing.assert_array_equal(value_of(e.cast(np.array([1.9, -1.9, 0.0]), "int32")), [1, -1, 0])
    np.testing.assert_array_equal(value_of(e.cast(np.array([np.nan, 0, 2]), bool)), [True, False, True])


def test_wrong_values_are_told():
    x = Variable(TensorType("float32", (2,)))
    for wrong, part in ((None, "NoneType"), ("2", "str"), ({1}, "set"), ([1, [2, 3]], "list"), (2j, "complex"),
                        (np.array(["a"]), "str"), (np.array([1j]), "complex128")):
        with pytest.raises(GraphTypeError, match=part):
            e.add(x, wrong)
    with pytest.raises(GraphTypeError, match="2 arguments"):
        e.elementwise("add", x)
    with pytest.raises(GraphTypeError, match="one dtype"):
        e.Elementwise("add").infer(TensorType("float32", ()), TensorType("float64", ()))


def test_constants():
    assert as_variable([1, 2]).type == TensorType("int64", (2,))
    assert as_variable([[1.5, 2]]).type == TensorType("float32", (1, 2))
    assert as_variable(np.float64(1.5)).dtype == as_variable([np.float64(1.5)]).dtype == "float64"
    assert as_variable(True).dtype == "bool"
    assert as_variable([]).type.shape == (0,)
    assert constant([1, 2], "float16", name="c").dtype == "float16"
    big_endian = as_variable(np.array([1.0, 2.0], ">f4"))
    assert big_endian.dtype == "float32"
    assert big_endian.data.dtype.isnative
    with pytest.raises(GraphTypeError, match="not a variable"):
        constant(as_variable(1))


def test_a_list_with_variables_is_stacked():
    x = Variable(TensorType("float32", ()))
    stacked = as_variable([x, 2, [x, x][0]])
    np.testing.assert_array_equal(evaluate([stacked], {x: np.float32(3)})[0], [3, 2, 3])
    assert stacked.dtype == "float32"


def test_programs_and_names():
    assert str(e.Elementwise("add")) == e.Elementwise("add").name == "add"
    for name in SCALAR_OPS:
        builder = getattr(e, "neq" if name == "ne" else name)
        assert builder.__doc__
    program = ScalarProgram(("float32",), (Instruction("constant", (), "float32", 2.0),
                                           Instruction("mul", (0, 1), "float32")), (2,))
    np.testing.assert_array_equal(program.evaluate(np.ones(3, "float32"))[0], [2, 2, 2])


def test_half_precision_is_computed_wide_and_rounded_once():
    x = np.array([3e4, 7e-7, 0.1], "float16")
    np.testing.assert_array_equal(value_of(e.rsqrt(x)), (1 / np.sqrt(x.astype("float32"))).astype("float16"))


def test_masked_product_is_zero_where_a_factor_is():
    first, second = np.array([0.0, -0.0, 2, 2, np.nan]), np.array([np.nan, np.inf, 3, np.inf, 0])
    np.testing.assert_array_equal(value_of(e.masked_mul(first, second)), [0, 0, 6, np.inf, 0])
