"""explain(format="html"): the report's own facts, any name only text."""
from __future__ import annotations

import numpy as np
import pytest
from printing.graphs import HOSTILE_NAMES, classify, hostile
from printing.test_html import Page

import symconv as sc


def _cells(page: Page) -> str:
    return "\n".join(page.texts.values())


def test_it_tells_what_the_report_tells():
    function = classify()
    function(np.ones((2, 1, 6, 6), "float32"))
    report = function.explain(format="dict")
    page = function.explain(format="html")
    text = _cells(Page(page))
    assert page._repr_html_() == str(page)
    for step in report["steps"]:
        for candidate in step["candidates"]:
            assert candidate["name"] in text
            assert candidate["refusal"] is None or candidate["refusal"] in text
    assert "fprop n2 c1 h6 w6 k3 r3 s3 flip f32 +bias+relu" in text
    assert page.count('<tr class="chosen">') == 1
    for title in ("rewriting", "memory", "what the bits depend on", "other steps"):
        assert f"<h3>{title}</h3>" in page


def test_one_step_alone():
    function = classify()
    function(np.ones((2, 1, 6, 6), "float32"))
    page = function.explain("Conv", format="html")
    assert page.count("<section>") == 1
    assert "other steps" not in page
    assert "rewriting" not in page


def test_without_a_program_it_says_so():
    assert "No program yet" in classify().explain(format="html")


@pytest.mark.parametrize("name", ["</style><script>", "plain"])
def test_hostile_names_stay_text(name):
    inputs, total = hostile()
    function = sc.compile(inputs, total, name=name)
    function(*[np.ones(2)] * len(HOSTILE_NAMES))
    page = Page(function.explain(format="html"))
    assert [tag for tag, _ in page.elements].count("script") == 0
    assert name in _cells(page)
