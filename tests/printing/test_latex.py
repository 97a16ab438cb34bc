"""Variables and functions in notebooks."""
from __future__ import annotations

import re
from base64 import b64decode

import numpy as np
import pytest
from printing.graphs import HOSTILE_NAMES, chain, classify, counter
from printing.test_html import Page

import symconv as sc
import symconv.tensor as T
from symconv.printing.latex import name_as_latex, to_latex


def balanced(text: str) -> bool:
    """Whether braces, and \\left with \\right, come in pairs."""
    depth = 0
    for brace in re.findall(r"(?<!\\)[{}]", text.replace(r"\\", "")):
        depth += 1 if brace == "{" else -1
        if depth < 0:
            return False
    return depth == 0 and text.count(r"\left") - text.count(r"\leftarrow") == text.count(r"\right")


def test_mathematics():
    x, y, W = T.vector("x"), T.vector("y1"), T.matrix("W")
    assert to_latex(T.sqrt(x) / (x + y)) == r"\frac{\sqrt{x}}{x + y_{1}}"
    assert to_latex((x + y) ** 2) == r"{\left(x + y_{1}\right)}^{2}"
    assert to_latex(T.dot(W, x) * 2) == r"W\,x \cdot 2"
    assert to_latex(T.tanh(x) * 1e-5).endswith(r"\cdot 10^{-5}")
    assert to_latex(W.T) == r"W^{\top}"
    assert r"\operatorname{relu}\left(x\right)" in to_latex(T.nnet.relu(x))
    assert to_latex(T.le(x, y)) == r"x \le y_{1}"


def test_a_variable_shows_a_displayed_formula():
    x = T.scalar("x")
    assert T.exp(x)._repr_latex_() == r"$\displaystyle \exp\left(x\right)$"


def test_long_expressions_are_left_to_pprint():
    assert to_latex(chain(2000)[1]) is None
    assert chain(2000)[1]._repr_latex_() is None


def test_updates_and_named_parts():
    x = T.vector("x")
    long = T.nnet.softplus(T.exp(x + 2) * T.log(x + 3) / T.cosh(x - 7) + T.sinh(x * 5))
    text = to_latex([long * long])
    assert "t_{1} = " in text
    assert text.startswith(r"\begin{gathered}")
    assert r"\leftarrow" in to_latex(counter())
    assert balanced(to_latex(counter()))


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_any_name_is_escaped(name):
    text = to_latex(T.exp(T.vector(name)) / T.vector(name))
    assert balanced(text)
    assert not re.search(r"(?<!\\)[&#$%<>]|[\x00-\x1f\ud800-\udfff\u202e]", text)


def test_names():
    assert name_as_latex("a{b}$") == r"\mathrm{a\{b\}\$}"
    assert name_as_latex("ß") == "ß"
    assert name_as_latex("") == r"\mathrm{}"


def test_a_function_shows_a_summary_with_a_drawing():
    function = classify()
    assert "none yet" in function._repr_html_()
    function(np.ones((2, 1, 6, 6), "float32"))
    page = Page(function._repr_html_())
    told = "\n".join(page.texts.values())
    for part in ("classify on cpu", "any_images", "float32[2,1,6,6]", "float32[2,3]", "filters", "3 steps"):
        assert part in told
    source = next(attributes["src"] for tag, attributes in page.elements if tag == "img")
    assert b64decode(source.split(",")[1]).startswith(b"<svg")


def test_a_large_function_points_to_the_page_and_names_stay_text():
    x, result = chain(100)
    x.name = "<script>"
    text = sc.compile([x], result, mode="reference", name="</h2><b>")._repr_html_()
    assert "to_html" in text
    assert "<script" not in text
    assert "<b>" not in text
