"""Convolutions on tensor cores, on the checked emulator, against loops in float64."""
from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from conv_oracle import expected, op_and_inputs, operands
from cuda_convolutions import check_epilogue, check_values, conv_operands, refusal
from cuda_launching import TARGET, operand_of, prepared, run, run_plan

from symconv.codegen.cuda import conv_tensor, conv_tensor_wgrad
from symconv.codegen.cuda.conv_tensor import ConvTensor
from symconv.codegen.cuda.conv_tensor_tiles import TILES, depth_swizzle, transposed_swizzle
from symconv.codegen.cuda.conv_tensor_wgrad import ConvTensorFilters
from symconv.codegen.cuda.convolution import ConvImplicitGemm
from symconv.codegen.cuda.emulator import EmulatorFault
from symconv.codegen.cuda.kernel import CudaKernel, LaunchPlan
from symconv.codegen.kernel import Operand, Problem
from symconv.config import config
from symconv.ops.conv_problem import ConvProblem
from symconv.ops.epilogue import Epilogue
from symconv.ops.layout import array_from_blocked, array_to_blocked
from symconv.ops.scalar import Instruction, ScalarProgram
from symconv.target import Target

KINDS = ["fprop", "dgrad", "wgrad"]
SETTINGS = [
    "n2 c3 h9 w11 k5 r3 s3 p1",
    "n1 c1 h1 w1 k1 r1 s1",
    "n3 c7 h5 w4 k13 r1 s1",
    "n1 c6 h17 w13 k9 r2 s3 u2x3 p1x0:2 g3",
    "n2 c16 h10 w9 k32 r3 s3 u2 p1 g2 flip",
    "n1 c3 h20 w21 k20 r7 s7 u2 p3",
    "n1 c2 h10 w10 k3 r2 s2 u4",
    "n2 c3 h16 w16 k4 r3 s3 l2x3 p2x4",
    "n1 c8 h9 w9 k8 r3 s3 u2 l2 p2",
    "n1 c8 h9 w9 k8 r3 s3 u3 l2 p2",
    "n0 c3 h8 w8 k4 r3 s3 p1",
    "n2 c0 h6 w6 k4 r3 s3 p1",
    "n2 c3 h6 w6 k0 r3 s3 p1",
    "n2 c40 h7 w7 k70 r3 s3 p1",
    "n2 c16 h10 w10 k8 r3 s3 p1 g8",
    "n1 c5 w100 k7 s5 l3 p6:0",
    "n2 c3 d5 h6 w7 k4 t3 r2 s3 p1x0x1 u1x2x1",
    "n1 c4 h6 w6 k4 r3 s3 u3 p2:0x0:1",
]


def implementation(kind):
    return ConvTensorFilters() if kind == "wgrad" else ConvTensor()


def use_tile(monkeypatch, tile):
    for module in (conv_tensor, conv_tensor_wgrad):
        monkeypatch.setattr(module, "TILES", (tile,))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("setting", SETTINGS)
def test_values(kind, setting):
    check_values(implementation(kind), ConvProblem.parse(f"{kind} {setting} f16"))


@pytest.mark.parametrize("kind", KINDS)
def test_bfloat16(kind):
    check_values(implementation(kind), ConvProblem.parse(f"{kind} n2 c9 h9 w7 k10 r3 s3 p1 bf16"))


@pytest.mark.parametrize("setting", ["n2 c9 h9 w7 k10 r3 s3 u2x1 p1 f32", "n2 c4 w40 k8 s3 u3 g2 flip f32"])
@pytest.mark.parametrize("kind", KINDS)
def test_tf32_where_it_is_asked_for(kind, setting):
    conv = ConvProblem.parse(f"{kind} {setting}")
    assert "float32 means float32" in refusal(implementation(kind), conv)
    arrays = operands(conv)
    op, inputs = op_and_inputs(conv, *arrays)
    with config.change(precision="tf32"):
        (found,) = run(implementation(kind), op, *inputs)
    wanted, magnitude = expected(conv, *arrays)
    assert (np.abs(found - wanted) <= 2**-10 * magnitude).all()  # each factor is rounded to 11 bits
    assert (np.abs(found - wanted) > 2**-20 * magnitude).any()


@pytest.mark.parametrize("tile", TILES, ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_every_tile(kind, tile, monkeypatch):
    use_tile(monkeypatch, tile)
    if kind == "wgrad" and tile.columns < 64:
        pytest.skip("rows of 32 half floats do not fill the banks")
    check_values(implementation(kind), ConvProblem.parse(f"{kind} n2 c40 h11 w13 k40 r3 s3 p1 f16"))


@pytest.mark.parametrize("kind", KINDS)
def test_offsets_of_64_bits(kind, monkeypatch):
    for module in (conv_tensor, conv_tensor_wgrad):
        monkeypatch.setattr(module, "LARGEST_INT32", 10)
    monkeypatch.setattr(ConvTensorFilters, "refuse", lambda *_: None)
    conv = ConvProblem.parse(f"{kind} n2 c9 h9 w7 k10 r3 s3 u2 p1 f16")
    plan = implementation(kind).build(conv_operands(conv), TARGET)
    assert any("typedef int64_t offset;" in launch.source for launch in plan.launches)
    check_values(implementation(kind), conv)


def channels_last(array):
    """The same elements in memory in the order (N, *spatial, C)."""
    order = (0, *range(2, array.ndim), 1)
    return np.ascontiguousarray(array.transpose(order)).transpose(0, array.ndim - 1, *range(1, array.ndim - 1))


def run_channels_last(conv, arrays, epilogue=None, extra=()):
    """The result of a problem whose tensors all have their channels together, the result too, and the plan."""
    op, inputs = op_and_inputs(conv, *(channels_last(array) for array in arrays), epilogue)
    shape = conv.result_shape
    like = channels_last(np.zeros(shape, np.float32))
    output = Operand(conv.dtype if epilogue is None else epilogue.dtype, shape, tuple(stride // 4 for stride in like.strides))
    every = [*inputs, *(channels_last(array) if array.ndim > 1 else array for array in extra)]
    problem = Problem(op, tuple(map(operand_of, every)), (output,))
    made = implementation(conv.kind.value)
    assert made.refuse(problem, TARGET) is None
    assert all(made.takes_strides(problem, number) for number, array in enumerate(every) if array.ndim > 1)
    plan = made.build(problem, TARGET)
    (found,) = run_plan(plan, problem, prepared(made, problem, every))
    moved = found.reshape(shape[0], *shape[2:], shape[1])
    return np.moveaxis(moved, -1, 1), plan


@pytest.mark.parametrize("setting", ["n2 c16 h9 w7 k24 r3 s3 u2 p1", "n2 c32 h6 w6 k16 r3 s3 p1 g2 flip", "n1 c16 w30 k8 s5 l2",
                                     "n2 c8 d3 h4 w5 k8 t2 r2 s2 u1x2x1", "n2 c5 h6 w6 k7 r1 s1"])
@pytest.mark.parametrize("kind", KINDS)
def test_channels_that_lie_together_are_read_and_written_so(kind, setting):
    conv = ConvProblem.parse(f"{kind} {setting} f16")
    arrays = operands(conv)
    found, plan = run_channels_last(conv, arrays)
    wanted, magnitude = expected(conv, *arrays)
    assert (np.abs(found.astype(np.float64) - wanted) <= 1e-3 * magnitude + 1e-7).all()
    if "c5" not in setting:
        assert not [launch for launch in plan.launches if "pack" in launch.name]


def test_filters_are_prepared_where_they_do_not_lie_as_they_are_read():
    conv = ConvProblem.parse("fprop n2 c16 h9 w7 k24 r3 s3 p1 f16")
    problem = conv_operands(conv)
    (preparation,) = ConvTensor().prepare(problem, TARGET)
    assert (preparation.position, preparation.result.shape) == (1, (24 * 9 * 16,))
    filters = problem.inputs[1]
    together = Operand(filters.dtype, filters.shape, (144, 1, 48, 16))
    assert ConvTensor().prepare(replace(problem, inputs=(problem.inputs[0], together)), TARGET) == ()


@pytest.mark.parametrize("setting", ["n2 c16 h9 w7 k24 r3 s3 u2 p1 f16 nhwc", "n2 c8 h6 w6 k5 r3 s3 p1 f16 nhwc",
                                     "n2 c8 w30 k16 s3 f16 nwc>ncw", "n2 c1 h6 w6 k1 r3 s3 f16 nhwc"])
@pytest.mark.parametrize("kind", KINDS)
def test_layouts_of_the_op(kind, setting):
    conv = ConvProblem.parse(f"{kind} {setting}")
    arrays = operands(conv)
    op, inputs = op_and_inputs(conv, *arrays)
    op = replace(op, layout=conv.layout)
    laid = [array_to_blocked(array, op.block(role)) for role, array in zip(op.kind.reads, inputs, strict=False)]
    (found,) = run(implementation(kind), op, *map(np.ascontiguousarray, laid), *inputs[2:])
    wanted, magnitude = expected(conv, *arrays)
    found = array_from_blocked(found, op.block(op.kind.produces))
    assert (np.abs(found.astype(np.float64) - wanted) <= 1e-3 * magnitude + 1e-7).all()


@pytest.mark.parametrize("kind", ["fprop", "dgrad"])
@pytest.mark.parametrize("setting", ["n2 c3 h7 w9 k5 r3 s3 p1", "n2 c8 h4 w4 k16 r3 s3 p1", "n2 c8 h8 w8 k16 r3 s3 u2 p1"])
def test_epilogues(kind, setting):
    check_epilogue(ConvTensor(), ConvProblem.parse(f"{kind} {setting} f16"))


@pytest.mark.parametrize("kind", ["fprop", "dgrad"])
@pytest.mark.parametrize("setting", ["n2 c8 h5 w5 k16 r3 s3 p1", "n2 c5 h5 w5 k9 r3 s3 p1"])
def test_epilogues_with_channels_together(kind, setting):
    conv = ConvProblem.parse(f"{kind} {setting} f16")
    body = (Instruction("mul", (0, 1), "float16"), Instruction("add", (3, 2), "float16"), Instruction("relu", (4,), "float16"))
    epilogue = Epilogue(ScalarProgram(("float16",) * 3, body, (5,)), ("channel", "full"))
    rng, arrays = np.random.default_rng(1), operands(conv)
    scale, residual = (rng.standard_normal(shape).astype("float16") for shape in (conv.result_shape[1], conv.result_shape))
    found, _ = run_channels_last(conv, arrays, epilogue, (scale, residual))
    wanted, magnitude = expected(conv, *arrays)
    along = scale.astype(np.float64)[:, None, None]
    assert (np.abs(found - np.maximum(wanted * along + residual, 0)) <= 2e-3 * (magnitude * (1 + abs(along)) + 1)).all()


VIEWS = {
    "reversed": lambda array: np.ascontiguousarray(array[..., ::-1])[..., ::-1],
    "reversed, channels together": lambda array: channels_last(array[:, :, ::-1, ::-1])[:, :, ::-1, ::-1],
    "every other": lambda array: np.repeat(array, 2, axis=-1)[..., ::2],
    "misaligned": lambda array: np.concatenate([array.ravel()[:1], array.ravel()])[1:].reshape(array.shape),
    "misaligned channels": lambda array: channels_last(np.concatenate([array[:, :1], array, array[:, :7]], 1))[:, 1:-7],
    "transposed": lambda array: np.ascontiguousarray(array.swapaxes(0, -1)).swapaxes(0, -1),
}


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("kind", KINDS)
def test_inputs_of_any_strides(kind, view):
    conv = ConvProblem.parse(f"{kind} n2 c8 h6 w8 k8 r3 s3 p1 f16")
    arrays = operands(conv)
    op, inputs = op_and_inputs(conv, *arrays)
    turned = [VIEWS[view](array) if array.ndim == 4 else array for array in inputs]
    assert all((np.asarray(old) == new).all() for old, new in zip(inputs, turned, strict=True))
    (found,) = run(implementation(kind), op, *turned)
    wanted, magnitude = expected(conv, *arrays)
    assert (np.abs(found.astype(np.float64) - wanted) <= 1e-3 * magnitude + 1e-7).all()


@pytest.mark.parametrize("setting", ["n2 c6 h9 w7 k8 r3 s2 u2x1 p1x0:1 l1x2 g2", "n1 c8 w40 k8 s3 u3 p2 flip"])
def test_the_three_kinds_come_from_one_trilinear_form(setting):
    forms = []
    for kind in KINDS:
        conv = ConvProblem.parse(f"{kind} {setting} f16")
        x, w, y = operands(conv)
        op, inputs = op_and_inputs(conv, x, w, y)
        (found,) = run(implementation(kind), op, *inputs)
        forms.append(float((found.astype(np.float64) * {"x": x, "w": w, "y": y}[conv.kind.produces]).sum()))
        magnitude = float((expected(conv, *(x, w, y))[1] * np.abs({"x": x, "w": w, "y": y}[conv.kind.produces])).sum())
    assert np.ptp(forms) <= 5e-4 * magnitude


def test_a_filter_gradient_in_parts_repeats_to_the_bit():
    conv = ConvProblem.parse("wgrad n8 c4 h16 w16 k6 r3 s3 p1 f16")
    arrays = operands(conv)
    plan = ConvTensorFilters().build(conv_operands(conv), TARGET)
    assert plan.launches[-1].name.endswith("_split_sum")
    check_values(ConvTensorFilters(), conv)
    op, inputs = op_and_inputs(conv, *arrays)
    first, second = (run(ConvTensorFilters(), op, *inputs)[0] for _ in range(2))
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("kind", ["fprop", "dgrad"])
@pytest.mark.parametrize("setting", ["n1 c40 h5 w6 k9 r3 s3 u2 p1", "n2 c20 w16 k24 s3 g2", "n1 c3 h4 w4 k8 r1 s1 u2"])
def test_sums_of_few_results_and_great_depth_are_made_in_parts(kind, setting, monkeypatch):
    monkeypatch.setattr(conv_tensor, "possible_splits", lambda *_: [3])
    conv = ConvProblem.parse(f"{kind} {setting} f16")
    assert ConvTensor().build(conv_operands(conv), TARGET).launches[-1].name.endswith("_sum")
    check_values(ConvTensor(), conv)
    check_epilogue(ConvTensor(), conv)
    arrays = operands(conv)
    found, _ = run_channels_last(conv, arrays)
    wanted, magnitude = expected(conv, *arrays)
    assert (np.abs(found.astype(np.float64) - wanted) <= 1e-3 * magnitude + 1e-7).all()


def test_few_results_of_great_depth_are_expected_to_be_worth_it():
    problem = conv_operands(ConvProblem.parse("fprop n1 c512 h7 w7 k512 r3 s3 p1 f16"))
    *_, product, total = ConvTensor().build(problem, TARGET).launches
    assert total.name == product.name + "_sum"
    assert product.grid[0] >= 64


FAULTS = {  # in which kernel what is replaced by what, and what the emulator says
    "no barrier": ("fprop", "            sc_barrier();  /* everybody's copies", "            /* everybody's copies",
                   "nobody has written it"),
    "wait for one step less": ("fprop", "sc_cp_async_wait<STAGES - 2>()", "sc_cp_async_wait<STAGES - 1>()",
                               "before the sc_cp_async"),
    "results too early": ("dgrad", "    sc_barrier();  /* nobody reads", "    /* nobody reads", "a race"),
    "pixels unguarded": ("wgrad", "            sc_barrier();  /* everybody's copies and",
                         "            /* everybody's copies and", "nobody has written it"),
    "one row more": ("fprop", "i * ROW_STEP < rows ?", "i * ROW_STEP <= rows ?", "a read of"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_planted_faults_are_found(fault):
    kind, old, new, said = FAULTS[fault]
    conv = ConvProblem.parse(f"{kind} n1 c40 h9 w9 k65 r3 s3 p1 f16")
    problem = conv_operands(conv)
    made = implementation(kind)
    plan = made.build(problem, TARGET)
    launches = tuple(broken(launch, old, new) for launch in plan.launches)
    assert sum(old in launch.source for launch in plan.launches) >= 1
    _, inputs = op_and_inputs(conv, *operands(conv))
    with pytest.raises(EmulatorFault) as found:
        run_plan(LaunchPlan(launches, plan.workspace_bytes, parts=plan.parts), problem, prepared(made, problem, inputs))
    assert said in found.value.what


def broken(launch: CudaKernel, old: str, new: str) -> CudaKernel:
    return CudaKernel(launch.name, launch.source.replace(old, new), launch.grid, launch.block, launch.buffers, launch.scalars,
                      launch.shared_bytes, launch.zeroed)


def rows_read_together(itemsize: int, transposed: bool):
    """What a quarter of a warp (8 lanes of `ldmatrix`, all of a load of words) reads: (row, vector, word of it)."""
    if not transposed:
        return [[(row, vector, None) for row in range(8)] for vector in range(4)]
    if itemsize == 2:
        return [[(row, vector, None) for row in range(8)] for vector in range(8)]
    return [[(row, 2 * pair + word // 4, word % 4) for row in range(first, first + 4) for word in range(8)]
            for pair in range(4) for first in (0, 4)]


@pytest.mark.parametrize(("itemsize", "transposed"), [(2, False), (4, False), (2, True), (4, True)])
def test_fragments_are_read_without_conflicts_of_banks(itemsize, transposed):
    widths = [64, 128, 256] if transposed else [0]
    for width, reads in itertools.product(widths, rows_read_together(itemsize, transposed)):
        swizzle = transposed_swizzle(width, itemsize) if transposed else depth_swizzle()
        banks = [(swizzle.place(row, vector) * 4 + (word or 0)) % 32 for row, vector, word in reads]
        assert len(set(banks)) == len(reads)
    rows = range(32)
    places = {swizzle.place(row, vector) for row in rows for vector in range(swizzle.vectors)}
    assert places == set(range(32 * swizzle.vectors))  # every vector has a place of its own


def test_the_swizzle_of_the_text_is_the_swizzle_that_was_checked():
    for swizzle in (depth_swizzle(), transposed_swizzle(128, 2), transposed_swizzle(128, 4)):
        text = swizzle.text.replace("/", "//")
        for row, vector in itertools.product(range(16), range(swizzle.vectors)):
            assert eval(text, {"row": row, "vector": vector}) == swizzle.place(row, vector)


def estimate(made, text, arch=90):
    conv = ConvProblem.parse(text)
    return made.estimate(conv_operands(conv), Target(device="cuda", arch=arch))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("arch", [75, 80, 90, 100])
def test_large_problems_are_expected_to_be_faster_than_on_cuda_cores(kind, arch):
    text = f"{kind} n16 c128 h28 w28 k128 r3 s3 p1 f16"
    assert 3 * estimate(implementation(kind), text, arch) < estimate(ConvImplicitGemm(), text, arch)


def test_tiles_follow_the_problem():
    def tile(text):
        (name,) = [launch.name for launch in ConvTensor().build(conv_operands(ConvProblem.parse(text)), TARGET).launches
                   if "pack" not in launch.name]
        return name.split("_")[5]

    assert tile("fprop n64 c256 h56 w56 k256 r3 s3 p1 f16") in ("256x128", "128x128")
    assert tile("fprop n1 c64 h14 w14 k64 r3 s3 p1 f16") == "64x64"
    assert tile("fprop n64 c64 h56 w56 k24 r3 s3 p1 f16") == "128x32"


def test_parts_fill_the_multiprocessors():
    plan = ConvTensorFilters().build(conv_operands(ConvProblem.parse("wgrad n64 c64 h56 w56 k64 r3 s3 p1 f16")), TARGET)
    (product,) = [launch for launch in plan.launches if launch.name.endswith("_split")]
    assert product.grid[0] >= 132


def test_grids_hold_any_batch():
    conv = ConvProblem.parse("fprop n3000000 c8 h16 w16 k8 r3 s3 p1 f16")
    plan = ConvTensor().build(conv_operands(conv), TARGET)
    assert all(max(launch.grid) <= 2**31 - 1 for launch in plan.launches)
    assert "blocks are more than a grid has" in refusal(ConvTensor(), ConvProblem.parse("fprop n300000000 c8 h16 w16 k8 r1 s1 f16"))


def test_what_is_refused():
    square = "n2 c8 h8 w8 k8 r3 s3 p1"
    assert "needs sm_80" in refusal(ConvTensor(), ConvProblem.parse(f"fprop {square} bf16"), Target(device="cuda", arch=75))
    assert "groups of one channel" in refusal(ConvTensor(), ConvProblem.parse("fprop n2 c8 h8 w8 k8 r3 s3 p1 g8 f16"))
    assert "no float64" in refusal(ConvTensor(), ConvProblem.parse(f"fprop {square} f64"))
    assert "sums in float64" in refusal(ConvTensorFilters(), ConvProblem.parse(f"wgrad {square} f16@f64"))
    assert refusal(ConvTensor(), ConvProblem.parse(f"fprop {square} f16"), Target(device="cuda", arch=75)) == "accepted"
