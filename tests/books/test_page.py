"""docs/faults.md: every test that it names is there, and every invariant is checked under the very words."""

import re
from pathlib import Path

from controlplane.inference.books import _all_checks

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "faults.md").read_text()


def test_every_test_that_it_names_is_there() -> None:
    named = re.findall(r"`([\w/]+\.py)::(\w+)`", PAGE)
    assert len(named) > 60
    for path, test in named:
        files = [folder / path for folder in (ROOT / "tests", ROOT / "tests" / "controlplane")]
        [file] = [each for each in files if each.exists()]
        assert re.search(rf"^(async )?def {test}\(", file.read_text(), re.MULTILINE), f"{path}::{test}"


def test_every_invariant_is_checked_under_its_words() -> None:
    section = PAGE.partition("## What always holds")[2].partition("\n## ")[0]
    assert len(re.findall(r"^\| \d+ \|", section, re.MULTILINE)) == 15
    words = re.findall(r'"([^"]+)"', section)
    assert len(words) == len(set(words)) > 15
    assert set(words) <= set(_all_checks())
    beyond = (ROOT / "tests" / "books" / "beyond.py").read_text()
    for name in re.findall(r"`(check_\w+)` of", section):
        assert f"def {name}(" in beyond
