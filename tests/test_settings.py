"""Settings that are deleted go back to the environment's value, or the default."""
from __future__ import annotations

import pytest

from symconv.config import MOST_THREADS, Config
from symconv.errors import ArgumentError


def test_deleting_a_setting_brings_back_the_environments_value_or_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SYMCONV_DNN_ENABLED", "false")
    config = Config()
    config.assert_no_host_op = config.dnn.enabled = True
    del config.assert_no_host_op, config.dnn.enabled
    assert config.assert_no_host_op is False
    assert config.dnn.enabled is False
    with pytest.raises(AttributeError, match="no setting 'nothing'"):
        del config.nothing


def test_deleting_a_groups_setting_leaves_the_one_of_the_same_name_outside() -> None:
    config = Config()
    default = config.dnn.workspace_bytes
    config.workspace_bytes, config.dnn.workspace_bytes = 5, 7
    del config.dnn.workspace_bytes
    assert (config.workspace_bytes, config.dnn.workspace_bytes) == (5, default)


@pytest.mark.parametrize("value", [-1, MOST_THREADS + 1, 100_000, "many"])
def test_a_number_of_threads_that_no_machine_starts(value: object) -> None:
    config = Config()
    config.threads = MOST_THREADS
    with pytest.raises(ArgumentError, match="threads does not take this value"):
        config.threads = value
    assert config.threads == MOST_THREADS
