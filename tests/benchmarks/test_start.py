"""A start is timed from the process to the first token, and one that fails says why."""

from pathlib import Path

import pytest

from benchmarks.start import StartFailed, start_engine


def test_a_start_ends_with_a_token(base_model: Path) -> None:
    start = start_engine(base_model, threads=1)
    assert 0 < start.ready < start.token


def test_an_engine_that_cannot_start_is_quoted(tmp_path: Path) -> None:
    with pytest.raises(StartFailed, match=r"the engine ended: engine: .*config\.json"):
        start_engine(tmp_path, threads=1)
