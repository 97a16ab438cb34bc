"""Watching the compiler: levels of the log, rewrite_graph, the list of rewrites, generated sources."""
from __future__ import annotations

import collections
import os
import re
import subprocess
import sys

import numpy as np
import pytest

import symconv as sc
import symconv.tensor as T
from symconv.errors import ArgumentError, GraphTypeError
from symconv.rewrites.log import Application
from symconv.tensor import nnet

SCRIPT = """
import numpy as np, symconv as sc, symconv.tensor as T
x = T.tensor4("x", shape=(1, 1, 5, 5))
w = sc.shared(np.ones((2, 1, 3, 3), "float32"), "w", shape=(2, 1, 3, 3))
sc.compile([x], T.log(1 + T.exp(T.nnet.conv2d(x, w))))(np.ones((1, 1, 5, 5), "float32"))
"""
SHOWN = {1: ["capture: ", "symbolic rewrites: ", "build: ", "canonicalize: "], 2: ["log_one_plus_exp: log1p(exp("],
         3: ["selection", ": refuses, ", "arena "], 4: ["int sc_conv_fprop_"]}


@pytest.mark.parametrize("level", range(5))
def test_levels_of_the_log(level):
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True,
                          env={**os.environ, "SYMCONV_DEBUG": str(level)})
    assert done.stdout == ""
    for shown_from, texts in SHOWN.items():
        assert all((text in done.stderr) == (level >= shown_from) for text in texts), (level, shown_from, done.stderr[:2000])


def softplus(x):
    return T.log(1 + T.exp(x))


def test_rewrite_graph_gives_the_rewritten_expression_and_leaves_the_given_one():
    x = T.vector("x")
    given = softplus(x)
    assert sc.pprint(sc.rewrite_graph(given)) == "softplus(x)"
    assert sc.pprint(given) == "log(1.0 + exp(x))"
    values = np.linspace(-3, 3, 7, dtype="float32")
    rewritten = sc.rewrite_graph(given)
    np.testing.assert_allclose(sc.compile([x], rewritten)(values), np.log1p(np.exp(values)), rtol=1e-6)


def test_rewrite_graph_of_phases_and_rules():
    x = T.vector("x")
    given = softplus(x * 1)
    assert sc.pprint(sc.rewrite_graph(given, include="canonicalize")) == "log(1.0 + exp(x))"
    assert sc.pprint(sc.rewrite_graph(given, exclude=["log_one_plus_exp"])) == "log1p(exp(x))"
    assert sc.pprint(sc.rewrite_graph(given, include=())) == sc.pprint(given)


def test_rewrite_graph_with_known_sizes_fuses():
    x = T.tensor4("x", shape=(1, 2, 6, 6))
    w = sc.shared(np.ones((3, 2, 3, 3), "float32"), "w", shape=(3, 2, 3, 3))
    with sc.config.change(layout="off"):
        rewritten = sc.rewrite_graph(nnet.relu(nnet.conv2d(x, w)))
    assert rewritten.apply.op.epilogue is not None
    assert sc.rewrite_graph(nnet.relu(nnet.conv2d(T.tensor4("any"), w))).apply.op.name == "relu"


def test_rewrite_graph_keeps_the_form():
    x = T.vector("x")
    pair = collections.namedtuple("pair", "first second")
    assert [sc.pprint(each) for each in sc.rewrite_graph([softplus(x), x])] == ["softplus(x)", "x"]
    assert sc.pprint(sc.rewrite_graph({"loss": softplus(x)})["loss"]) == "softplus(x)"
    assert sc.rewrite_graph(pair(x, softplus(x))).first is x


def test_unknown_rewrites_are_an_error_that_lists_the_known_ones():
    for options in ({"include": "fuse"}, {"exclude": ["canonicalise"]}):
        with pytest.raises(ArgumentError, match=r"(?s)no rewrite of this name.*canonicalize.*log_one_plus_exp.*fuse_elementwise"):
            sc.rewrite_graph(T.vector("x"), **options)
    with pytest.raises(ArgumentError, match=r"(?s)fuse_into_epilogue.*'x' is float32\[\?\]"):
        sc.rewrite_graph(T.exp(T.vector("x")), include="fuse_into_epilogue")
    with pytest.raises(GraphTypeError, match="can be rewritten"):
        sc.rewrite_graph(3)


def test_the_list_of_rewrites():
    x = T.vector("x")
    function = sc.compile([x], T.sqrt(softplus(x)))
    before = list(function.rewrites)
    assert [each.rule for each in before] == ["log_one_plus", "log_one_plus_exp"]
    assert all(isinstance(each, Application) for each in before)
    assert {place.filename for each in before for place in each.sources} == {__file__}
    function(np.ones(3, "float32"))
    assert len(function.rewrites) > len(before)
    assert function.rewrites[0] is before[0]
    assert function.rewrites[-1].phase == "elemwise_fuse"
    lines = repr(function.rewrites).split("\n")
    assert len(lines) == len(function.rewrites)
    assert re.fullmatch(r"  1 stabilize +log_one_plus_exp: log1p\(exp\(x\)\) → softplus\(x\)  \[test_watching.py:\d+\]", lines[1])
    assert repr(sc.compile([x], x).rewrites) == "nothing was rewritten"


def test_sources_by_kernel():
    x = T.matrix("x")
    function = sc.compile([x], [T.exp(x).sum(axis=1), T.dot(x, x)])
    assert function.sources() == {}
    function(np.ones((4, 4), "float32"))
    sources = function.sources()
    assert {step.kernel.name for step in function.programs[-1].steps} == set(sources)
    assert all(f"int {name}(" in text for name, text in sources.items())
    function(np.ones((40, 40), "float32"))
    assert set(sources) <= set(function.sources())
    assert all(text == function.sources()[name] for name, text in sources.items())


def test_sources_of_cuda_kernels():
    x = T.vector("x", "float32", shape=(5,))
    sources = sc.compile([x], T.exp(x) * 2, device="emulator").sources()
    assert sources
    assert all(name in text and "sc_global" in text for name, text in sources.items())


def test_one_name_with_several_sources_is_numbered():
    from types import SimpleNamespace

    from symconv.codegen.kernel import Kernel
    from symconv.runtime.sources import sources_of

    steps = [SimpleNamespace(kernel=Kernel("twice", text)) for text in ("a", "b", "a")] + [SimpleNamespace(kernel=None)]
    assert sources_of([SimpleNamespace(steps=steps)]) == {"twice": "a", "twice (2)": "b"}


def test_keep_sources_keeps_those_of_cached_kernels_too(tmp_path):
    x = T.vector("x", "float64", shape=(3,))
    with sc.config.change(cache_dir=str(tmp_path)):
        sc.compile([x], T.exp(x) * 3)
        assert not list(tmp_path.glob("??/*.c"))
        with sc.config.change(keep_sources=True):
            function = sc.compile([x], T.exp(x) * 3)
        kept = {path.read_text() for path in tmp_path.glob("??/*.c")}
    assert set(function.sources().values()) <= kept
