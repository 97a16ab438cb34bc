"""Which implementation runs: forced names, kinds that a name is not meant for, refusals."""
from __future__ import annotations

import numpy as np
import pytest
from conv_oracle import expected

import symconv as sc
import symconv.tensor as T
from symconv.codegen.convolution import CONV_IMPLEMENTATIONS
from symconv.errors import ArgumentError, BackendError
from symconv.ops.conv_problem import ConvProblem
from symconv.ops.convolution import Conv
from symconv.ops.spec import Kind, make_spec
from symconv.tensor import nnet


def gradients(dtype="float64"):
    x, w = T.tensor4("x", dtype), T.tensor4("w", dtype)
    cost = (nnet.conv2d(x, w, border_mode=1) ** 2).sum()
    return sc.compile([x, w], [cost, *sc.grad(cost, [x, w])])


def arrays(dtype="float64"):
    generator = np.random.default_rng(0)
    return generator.normal(size=(2, 3, 6, 7)).astype(dtype), generator.normal(size=(4, 3, 3, 3)).astype(dtype)


@pytest.mark.parametrize("name", ["conv_direct", "conv_gemm", "conv_wgrad_gemm", "conv_wgrad_direct", "reference"])
def test_a_forced_name_binds_the_kinds_it_is_meant_for(name):
    wanted = gradients()(*arrays())
    with sc.config.change(conv__implementation=name):
        function = gradients()
        found = function(*arrays())
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10)
    names = [step.choice.name for step in function.programs[0].steps if step.choice is not None and "Conv" in str(step.node.op)]
    assert len(names) == 3
    if name == "reference":
        assert names == ["reference"] * 3
    else:
        assert names.count(name) == (1 if "wgrad" in name else 2)


def test_a_forced_name_that_refuses_is_an_error_with_the_reason():
    text = r"conv_winograd_4x4.*\n.*float64"
    with sc.config.change(conv__implementation="conv_winograd_4x4"), pytest.raises(BackendError, match=text):
        gradients()(*arrays())


def test_an_unknown_name_is_an_error_with_the_names():
    with sc.config.change(conv__implementation="fastest"), pytest.raises(ArgumentError, match=r"'fastest'(.|\n)*conv_direct"):
        gradients()(*arrays())


def test_candidates_are_only_those_meant_for_the_kind():
    function = gradients("float32")
    function(*arrays("float32"))
    for step in function.programs[0].steps:
        if step.choice is not None and "Conv{wgrad" in str(step.node.op):
            assert all("wgrad" in candidate.name for candidate in step.choice.candidates)


@pytest.mark.parametrize("implementation", [each for each in CONV_IMPLEMENTATIONS if each.serves(Conv(Kind.FPROP, make_spec(2)))],
                         ids=lambda each: each.name)
@pytest.mark.parametrize("filters", [8, 1])
def test_views_reach_every_implementation_as_they_are(implementation, filters):
    """Reversed rows, every second column and turned channels, against loops in float64."""
    generator = np.random.default_rng(0)
    wide = generator.standard_normal((2, 9, 22, 8)).astype("float32")
    conv = ConvProblem.parse(f"fprop n2 c8 h9 w11 k8 r3 s3 p1 {'g8 ' if filters == 1 else ''}f32")
    weights = generator.standard_normal(conv.w_shape).astype("float32")
    x = T.tensor4("x", "float32")
    view = x[:, ::-1, ::2].dimshuffle(0, 3, 1, 2)
    with sc.config.change(conv__implementation=implementation.name):
        function = sc.compile([x], nnet.conv_fprop(view, weights, padding=1, groups=conv.spec.groups))
        try:
            found = function(wide)
        except BackendError as refusal:
            pytest.skip(str(refusal))
    wanted, magnitude = expected(conv, wide[:, ::-1, ::2].transpose(0, 3, 1, 2), weights, np.zeros(conv.y_shape))
    assert (abs(found - wanted) <= 3e-6 * magnitude).all()
