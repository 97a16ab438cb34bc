"""Two short epochs of the demonstration: it learns, says so in its last line, and writes its pictures."""
from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from symconv import cli
from symconv.demo import run
from symconv.demo.digits import Digits, load_digits, shifted


def test_the_digits() -> None:
    digits = load_digits()
    assert digits.train_images.shape == (4000, 1, 28, 28)
    assert digits.test_images.shape == (1000, 1, 28, 28)
    assert digits.train_images.dtype == np.float32
    assert (digits.train_images.min(), digits.train_images.max()) == (0, 1)
    assert np.bincount(digits.train_labels).tolist() == [400] * 10
    assert np.bincount(digits.test_labels).tolist() == [100] * 10
    learnt = {image.tobytes() for image in digits.train_images}
    assert not any(image.tobytes() in learnt for image in digits.test_images), "held-out digits were learnt from"


def test_shifted_images_hold_the_same_pixels() -> None:
    generator = np.random.default_rng(0)
    images = np.zeros((20, 1, 9, 9), np.float32)
    images[:, :, 3:6, 3:6] = generator.random((20, 1, 3, 3), np.float32)
    moved = shifted(images, generator)
    np.testing.assert_allclose(moved.sum((1, 2, 3)), images.sum((1, 2, 3)), rtol=1e-6)
    assert not np.array_equal(moved, images)


def some_digits() -> Digits:
    """A quarter of the digits: all classes, in the same proportions."""
    all_of_them = load_digits()
    return Digits(all_of_them.train_images[::4], all_of_them.train_labels[::4],
                  all_of_them.test_images[::4], all_of_them.test_labels[::4])


def test_two_short_epochs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(run, "load_digits", some_digits)
    output = tmp_path / "pictures"
    status = cli.main(["demo", "--epochs", "2", "--output", str(output), "--require", "50"])
    text = capsys.readouterr().out
    assert status == 0
    last = text.rstrip().splitlines()[-1]
    assert re.fullmatch(r"test accuracy \d{1,3}\.\d\d %", last), last
    assert float(last.split()[2]) > 50, "chance is 10 %"
    assert text.startswith("1000 digits to learn from, 250 held out\n")
    assert re.search(r"^epoch  2: loss \d\.\d{4}, test accuracy \d+\.\d\d %$", text, re.MULTILINE)
    assert text.count("Conv{") >= 5, "the printed graph has its convolutions"
    svg = (output / "demo_graph.svg").read_text()
    assert svg.startswith(("<svg", "<?xml"))
    assert "Conv" in svg
    with Image.open(output / "demo_digits.png") as sheet:
        assert sheet.size == (10 * 76, 4 * 94)
        assert len(sheet.getcolors(1 << 24) or ()) > 20


def test_accuracy_below_what_is_required_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "run_demo", lambda *_: 0.9749)
    assert cli.main(["demo", "--require", "97.5"]) == 1
    assert cli.main(["demo", "--require", "97.4"]) == 0


def test_every_setting_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["config"]) == 0
    text = capsys.readouterr().out
    assert "SYMCONV_CACHE_DIR" in text
    assert "dnn.enabled" in text
