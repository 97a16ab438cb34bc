"""All three kinds of convolution against plain loops, for a seeded sample of all settings."""
from __future__ import annotations

from itertools import product

import pytest
from convolution_sweep import check, sample, settings
from support import evaluate


@pytest.mark.parametrize("ndim", [1, 2, 3])
def test_a_sample_of_all_settings_agrees_with_plain_loops(ndim: int) -> None:
    for number, setting in enumerate(sample(ndim, {1: 250, 2: 90, 3: 30}[ndim], seed=ndim)):
        check(setting, evaluate, static=number % 2 == 0, seed=number)


@pytest.mark.parametrize("ndim", [1, 2])
def test_float32_agrees_with_plain_loops(ndim: int) -> None:
    for number, setting in enumerate(sample(ndim, 30, seed=10 + ndim)):
        check(setting, evaluate, "float32", seed=number)


def test_the_sweep_holds_every_value_of_every_parameter() -> None:
    every = list(settings(1))
    assert len(every) > 20_000
    assert {setting.kernel[0] for setting in every} == {1, 2, 3, 5}
    assert {setting.image[0] for setting in every} == set(range(1, 18))
    assert {setting.mode[0] for setting in every} == {0, 1, 2, (0, 1), (2, 0), "half", "full", "same", "same_lower"}
    assert {(setting.stride, setting.dilation, setting.groups, setting.batch, setting.flip) for setting in every} == {
        ((s,), (d,), g, n, f) for s, d, g, n, f in product((1, 2, 3), (1, 2, 3), (1, 2, 3), (0, 1, 3), (False, True))}
