"""to_html: one page, every name only text, a record for each node, phases that hang together."""
from __future__ import annotations

import json
import re
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser

import numpy as np
import pytest
from printing.graphs import HOSTILE_NAMES, arithmetic, chain, classifier, classify, counter, hostile

import symconv as sc
import symconv.tensor as T
from symconv import to_html
from symconv.errors import GraphTypeError
from symconv.graph import capture
from symconv.printing.html_page import script_data
from symconv.printing.names import escape

VOID = {"meta", "input", "br", "link", "img"}


class Page(HTMLParser):
    """The elements of a page, which must be closed in order, and the texts of scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open, self.elements, self.texts = [], [], {}
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open:
            key = (self.open[-1], self.elements[-1][1].get("id", ""))
            self.texts[key] = self.texts.get(key, "") + data

    @property
    def data(self):
        return json.loads(self.texts["script", "data"])


def test_the_page_is_well_formed_and_asks_for_nothing():
    text = to_html(classify())
    page = Page(text)
    assert text.startswith("<!doctype html>")
    assert [tag for tag, _ in page.elements].count("script") == 2
    assert not [each for _, attributes in page.elements for each in attributes
                if each in ("src", "href") or each.startswith("on")]
    assert not re.search(r"https?://|@import|url\(|fetch\(|XMLHttp", text)
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", text)


def test_the_policy_allows_its_own_script_and_style_and_nothing_else():
    page = Page(to_html(arithmetic()))
    policy = next(attributes["content"] for tag, attributes in page.elements if attributes.get("http-equiv"))
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == rules["base-uri"] == "'none'"
    for name, text in (("script-src", page.texts["script", ""]), ("style-src", page.texts["style", ""])):
        assert rules[name] == f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def test_hostile_names_stay_text_and_each_has_one_node():
    inputs, total = hostile()
    with sc.name_scope('</script><script>alert(1)</script>" onload="x'):
        total = total * 2
    for made in (total, sc.compile(inputs, total, name='</title><script>"&amp;')):
        text = to_html(made)
        page = Page(text)
        assert [tag for tag, _ in page.elements].count("script") == 2
        data = page.data
        for phase in data["phases"]:
            leaves = [data["records"][number] for number in phase["nodes"] if data["records"][number]["kind"] == "input"]
            assert len(leaves) == len(HOSTILE_NAMES)
            assert {each.get("name", "") for each in leaves} == set(map(escape, HOSTILE_NAMES))
        assert any(record["home"].startswith("<") for record in data["records"] if "home" in record)
    assert text.isascii() or page


@pytest.mark.parametrize("text", ["</script>", "<!--", "]]>", "\u2028", "\ud800", "&amp;", '"', "\\u003c"])
def test_data_cannot_leave_its_script(text):
    written = script_data({"name": text})
    assert written.isascii()
    assert not set("<>&") & set(written)
    assert json.loads(written) == {"name": text}


def test_everything_that_prints_has_a_page(tmp_path):
    x, y = T.vector("x"), T.vector("y")
    function = counter()
    for made in (x + y, [x, y], {"sum": x + y}, capture([x, y], [x * y]), function, function.programs[0], (x + y).apply):
        assert Page(to_html(made)).data["phases"][0]["nodes"]
    path = to_html(function, tmp_path / "graph.html")
    assert path == tmp_path / "graph.html"
    assert path.read_text("utf-8") == to_html(function)
    with pytest.raises(GraphTypeError):
        to_html("no graph")


def _trained():
    function = classify()
    function(np.ones((2, 1, 6, 6), "float32"))
    return function


def test_phases_go_from_the_expression_to_the_program():
    data = Page(to_html(_trained())).data
    names = [phase["name"] for phase in data["phases"]]
    assert names[0] == "as written"
    assert names[-1] == "program"
    records = data["records"]
    for phase in data["phases"]:
        inside = set(phase["nodes"])
        assert all(source in inside for number in phase["nodes"] for source, _ in records[number].get("inputs", []))
    assert [records[number]["head"] for number in data["phases"][0]["nodes"] if records[number]["kind"] == "apply"] == [
        "Conv fprop", "DimShuffle", "add", "relu", "sum", "mul"]
    kinds = {records[number]["label"]: records[number]["kind"] for number in data["phases"][names.index("bind")]["nodes"]}
    assert kinds["filters"] == "shared"


def test_what_a_phase_made_is_told_with_its_rule_and_what_it_was():
    data = Page(to_html(_trained())).data
    records, phases = data["records"], data["phases"]
    made = [record for record in records if "by" in record]
    assert made
    for record in made:
        phase, numbers = record["by"]
        assert all(phases[phase]["applications"][number]["rule"] for number in numbers)
    fused = next(each for each in made if each["head"].startswith("Conv") and "relu" in " ".join(each["details"]))
    assert {records[number]["head"] for number in fused["was"]} >= {"relu", "add"}
    rules = [phases[fused["by"][0]]["applications"][number]["rule"] for number in fused["by"][1]]
    assert any("epilogue" in rule or "fuse" in rule for rule in rules)


def test_unchanged_nodes_are_not_marked():
    x, y = T.vector("x", "float32", shape=(3,)), T.vector("y", "float32", shape=(3,))
    data = Page(to_html(sc.compile([x, y], [T.exp(x) * 1.0, T.sum(y)]))).data
    made = {record["head"] for record in data["records"] if "by" in record}
    assert "sum" not in made
    assert "exp" not in made


def test_steps_memory_and_sources_are_those_of_the_program():
    function = _trained()
    program = function.programs[0]
    data = Page(to_html(function)).data
    assert [step["kernel"] for step in data["steps"]] == [step.kernel.name for step in program.steps]
    assert data["sources"] == {step.kernel.name: step.kernel.source for step in program.steps}
    assert data["memory"]["arena"] == program.memory.arena_bytes
    assert [(slot["offset"], slot["bytes"], slot["first"], slot["last"]) for slot in data["memory"]["slots"]] == [
        (slot.offset, slot.nbytes, slot.first, slot.last) for slot in program.memory.slots]
    assert all(slot["contents"] for slot in data["memory"]["slots"])
    assert [step["bytes"] for step in data["steps"]] == [
        sum(place.operand.nbytes for place in (*step.reads, *step.writes)) for step in program.steps]
    assert [data["records"][step["node"]]["step"] for step in data["steps"]] == list(range(len(program.steps)))
    convolution = next(step for step in data["steps"] if "problem" in step)
    assert sum(candidate["chosen"] for candidate in convolution["candidates"]) == 1
    assert any(candidate["refusal"] for candidate in convolution["candidates"])


def test_the_program_of_the_last_call_is_shown():
    x = T.vector("x", "float32")
    function = sc.compile([x], T.exp(x))
    for size in (2, 5):
        function(np.ones(size, "float32"))
        (step,) = Page(to_html(function)).data["steps"]
        assert (step["reads"], step["writes"]) == ([f"float32[{size}]"],) * 2


def test_a_line_of_the_user_is_told_once():
    result = T.vector("x", "float32")
    for _ in range(3):
        result = T.exp(result)
    data = Page(to_html(result)).data
    assert len(data["places"]) == len({(place["file"], place["line"]) for place in data["places"]})


def test_times_are_there_after_profiled_calls():
    images, _, _, sums = classifier()
    function = sc.compile([images], sums, profile=True)
    assert not any("time" in step for step in Page(to_html(function)).data["steps"])
    function(np.ones((2, 1, 6, 6), "float32"))
    steps = Page(to_html(function)).data["steps"]
    assert sum(step["time"]["share"] for step in steps) == pytest.approx(1.0)


def test_two_thousand_nodes_make_a_page_of_a_few_megabytes():
    _, result = chain(2000)
    text = to_html(result)
    assert len(Page(text).data["phases"][0]["nodes"]) == 2001
    assert len(text) < 4_000_000


def test_the_page_is_the_same_for_the_same_graph():
    assert to_html(arithmetic()) == to_html(arithmetic())
