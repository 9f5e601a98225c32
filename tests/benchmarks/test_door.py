"""What the door's benchmark makes of its rows."""

from typing import Any

import pytest

from benchmarks.door import DOOR, Row, goals_of

HOLDS: list[dict[str, Any]] = [{"what": "taken", "per_s": 500.0}]
GOOD = [
    Row(DOOR, "streamed", cpu_ms=2.0, per_core=500.0),
    Row(DOOR, "whole", cpu_ms=9.0, per_core=900.0),
    Row(DOOR, "adapter", cpu_ms=2.0, per_core=500.0),
    Row("litellm", "streamed", per_core=50.0),
    Row("litellm", "whole", per_core=90.0),
]


def test_all_goals_are_judged() -> None:
    assert list(goals_of(GOOD, HOLDS).values()) == [True] * 5


@pytest.mark.parametrize(
    ("at", "row", "missed"),
    [
        (0, Row(DOOR, "streamed", cpu_ms=2.01, per_core=500.0), "streamed: at most"),
        (0, Row(DOOR, "streamed", cpu_ms=2.0, per_core=499.0), "streamed: 10 times"),
        (2, Row(DOOR, "adapter", cpu_ms=2.01, per_core=500.0), "adapter: at most"),
        (4, Row("litellm", "whole", per_core=90.1), "whole: 10 times"),
    ],
)
def test_a_goal_that_is_missed_is_named(at: int, row: Row, missed: str) -> None:
    [name] = [goal for goal, is_met in goals_of([*GOOD[:at], row, *GOOD[at + 1 :]], HOLDS).items() if not is_met]
    assert name.startswith(missed)


def test_what_was_not_measured_is_not_judged() -> None:
    absent = [Row("litellm", mode, absent="no such folder") for mode in ("streamed", "whole")]
    assert all("LiteLLM" not in goal for goal in goals_of([*GOOD[:3], *absent], HOLDS))
    assert list(goals_of(GOOD, [{"per_s": 499.0}]).values())[-1] is False
    assert all("row" not in goal for goal in goals_of(GOOD, []))
