"""The benchmark of usage pages at a tiny size: every page is asked for, and its goals follow from what was found."""

import copy
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.usage import goals_of

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def printed() -> str:
    command = [sys.executable, "-m", "benchmarks.usage", "--events", "25000", "--tenants", "36", "--days", "60"]
    env = {"PATH": "/usr/bin:/bin", "PYTHONPATH": f"{ROOT}:{ROOT / 'platform'}"}
    return subprocess.run(
        [*command, "--seconds", "0.3"], cwd=ROOT, env=env, check=True, stdout=subprocess.PIPE, text=True, timeout=300
    ).stdout


@pytest.fixture
def found(printed: str) -> dict[str, Any]:
    return json.loads(printed.splitlines()[-1])


def test_the_largest_tenant_has_its_share_and_every_page_is_asked_for(found: dict[str, Any]) -> None:
    assert found["events"] == 25_000
    assert 3_700 < found["hot_events"] < 4_700  # 1 / sqrt(36)
    assert len(found["pages"]) >= 25
    assert all(page["statements"] > 0 and page["sql_ms"] > 0 for page in found["pages"])


def test_the_hot_row_is_taken_and_released(found: dict[str, Any]) -> None:
    assert [row["what"] for row in found["holds"]] == ["taken", "taken and released"]
    assert all(row["per_s"] > 0 and row["cpu_ms"] > 0 for row in found["holds"])


def test_the_tables_say_the_same(printed: str, found: dict[str, Any]) -> None:
    for page in found["pages"]:
        assert f"\n{page['page']:44}" in printed


def test_a_goal_that_is_missed_is_named(found: dict[str, Any]) -> None:
    good = copy.deepcopy(found)
    for page in good["pages"]:
        page |= {"sql_ms": 1.0, "scanned": []}
    good["sums"]["scanned"] = []
    good["holds"][0]["per_s"] = 500.0
    assert list(goals_of(good).values()) == [True, True, True]
    slow, scanning, contended = (copy.deepcopy(good) for _ in range(3))
    slow["pages"][-1]["sql_ms"] = 100.1
    scanning["pages"][0]["scanned"] = ["billing_usageevent"]
    contended["holds"][0]["per_s"] = 499.0
    assert [list(goals_of(each).values()).index(False) for each in (slow, scanning, contended)] == [0, 1, 2]


def test_no_plan_scans_a_big_table(found: dict[str, Any]) -> None:
    """Of the events, and of their sums: more rows than `timing.BIG_ROWS` each."""
    assert sum(found["sums"]["rows"].values()) > 20_000
    assert {page["page"]: page["scanned"] for page in found["pages"] if page["scanned"]} == {}
    assert found["sums"]["scanned"] == []
