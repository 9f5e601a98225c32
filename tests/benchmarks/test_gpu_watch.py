"""Sections that kill their process, hang or break the device: each is named, and all others are done."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

from benchmarks.gpu.watch import BROKEN, watch

NAMES = ["one", "two", "three", "four"]
# A process that does sections from sys.argv[1] on; what befalls them is in sys.argv[3].
PROGRAM = """
import json, os, sys, time
first, log, fates = int(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3])
def note(record):
    with open(log, "a") as file:
        file.write(json.dumps(record) + "\\n")
if fates.get("start") == "dies":
    sys.exit(7)
note({"environment": {"device": "a toaster"}})
for name in ["one", "two", "three", "four"][first:]:
    note({"begun": name})
    fate = fates.get(name)
    note({"lines": [{"what": f"{name}, first"}]})
    if fate == "dies":
        os.kill(os.getpid(), 9)
    if fate == "hangs":
        time.sleep(600)
    if fate in ("fails", "breaks"):
        note({"failures": {name: "RuntimeError: no"}})
    if fate == "breaks":
        sys.exit(3)
    if fate is None:
        note({"lines": [{"what": f"{name}, second"}]})
"""


def command(log: Path, **fates: str) -> Callable[[int], list[str]]:
    return lambda first: [sys.executable, "-c", PROGRAM, str(first), str(log), json.dumps(fates)]


def said(lines: list[dict[str, object]]) -> list[object]:
    return [line["what"] for line in lines]


def test_nothing_befalls_them(tmp_path: Path) -> None:
    result = watch(command(tmp_path / "log"), NAMES, tmp_path / "log", 30)
    assert said(result.lines) == [f"{name}, {which}" for name in NAMES for which in ("first", "second")]
    assert (result.failures, result.left_out, result.environment) == ({}, [], {"device": "a toaster"})


def test_each_fate_ends_its_own_section(tmp_path: Path) -> None:
    fates = {"one": "dies", "two": "breaks", "three": "fails"}
    result = watch(command(tmp_path / "log", **fates), NAMES, tmp_path / "log", 30)
    assert said(result.lines) == ["one, first", "two, first", "three, first", "four, first", "four, second"]
    assert set(result.failures) == {"one", "two", "three"}
    assert "exit code -9" in result.failures["one"]
    assert result.failures["two"] == result.failures["three"] == "RuntimeError: no"
    assert BROKEN == 3


def test_what_hangs_is_killed(tmp_path: Path) -> None:
    result = watch(command(tmp_path / "log", two="hangs"), NAMES, tmp_path / "log", 1.0)
    assert said(result.lines)[-1] == "four, second"
    assert list(result.failures) == ["two"]
    assert "killed" in result.failures["two"]


def test_what_cannot_even_start_is_not_tried_for_ever(tmp_path: Path) -> None:
    result = watch(command(tmp_path / "log", start="dies"), NAMES, tmp_path / "log", 30)
    assert (list(result.failures), result.left_out, result.lines) == (["start"], NAMES, [])
