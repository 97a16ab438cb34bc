"""`python -m symconv bench`: the table of a convolution's implementations."""
from __future__ import annotations

import re

import pytest

from symconv.cli import main
from symconv.errors import ArgumentError
from symconv.ops.conv_problem import ConvProblem
from symconv.printing.bench import _epilogue, bench

ROW = re.compile(r"  (\*|) {1,3}(\w+) +(\d+\.\d{4}) +(\d+\.\d) +(\d+%)$")


def rows(text: str) -> list[tuple[str, str, float]]:
    """Mark, name and milliseconds of what was timed."""
    found = [ROW.match(line) for line in text.splitlines()]
    return [(each[1], each[2], float(each[3])) for each in found if each]


@pytest.mark.parametrize("problem", ["fprop n2 c8 h9 w8 k8 r3 s3 p1 f32 +bias+relu", "dgrad n1 c4 h9 w8 k6 r3 s3 u2 f64",
                                     "wgrad n2 c3 w30 k4 s5 f32",
                                     "fprop n1 c16 h8 w8 k16 r3 s3 p1 f32 nchw8c +scale+residual+tanh"])
def test_every_candidate_is_timed_or_says_why_not(problem: str) -> None:
    text = bench(problem)
    assert text.splitlines()[0] == f"{problem} on cpu"
    found = rows(text)
    assert len(found) >= 2, text
    assert [mark for mark, *_ in found] == ["*"] + [""] * (len(found) - 1), text  # the fastest is what runs
    assert [seconds for *_, seconds in found] == sorted(seconds for *_, seconds in found)
    assert "refuses: " in text
    assert "expected" not in text


def test_of_one_candidate_nothing_is_timed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "fprop n1 c2 h4 w4 k2 r3 s3 f32", "--device", "emulator", "--training"]) == 0
    text = capsys.readouterr().out
    assert "on emulator" in text
    assert text.count("* ") >= 1


def test_where_nothing_is_generated_it_says_so() -> None:
    text = bench("fprop n1 c2 h4 w4 k2 r3 s3 f16")
    assert text.endswith("nothing generated takes it: symconv runs the NumPy reference")
    assert "not float16" in text


@pytest.mark.parametrize("words", ["+bias", "+bias+relu", "+scale+bias+residual+relu", "+tanh+gate", "+residual+residual"])
def test_epilogues_say_what_they_were_made_from(words: str) -> None:
    problem = ConvProblem.parse(f"fprop n1 c2 h4 w4 k2 r3 s3 f32 {words}")
    assert str(_epilogue(problem)) == words


@pytest.mark.parametrize(("problem", "match"), [
    ("", "not the text"), ("fprop n1", "it does not say c, k, w"), ("fprop n1 c2 h4 w4 k2 r3 s3 f32 +foo", "foo"),
    ("fprop n1 c2 h2 w2 k2 r3 s3 f32", "larger|size|kernel")])
def test_bad_problems_are_the_users_errors(problem: str, match: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises((ArgumentError, ValueError), match=match):
        bench(problem)
    assert main(["bench", problem]) == 2
    assert re.search(match, capsys.readouterr().out)
