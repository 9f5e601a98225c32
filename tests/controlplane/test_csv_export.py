"""No cell of a file that we hand out is run by the spreadsheet that opens it, and none loses what it says."""

import csv
from datetime import UTC, datetime
from decimal import Decimal
from io import StringIO
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.csv_export import cell, csv_lines

FORMULAS = ("=1+1", "+1", "-1+cmd|' /C calc'!A0", "@SUM(A1)", "＝1+1", "＋1", "－1", "＠SUM(1)")


@pytest.mark.parametrize("blank", ["", " ", "  ", "\t", "\r", "\n", "\r\n ", "\xa0", "\u3000", "\ufeff", "\u200b"])
@pytest.mark.parametrize("formula", FORMULAS)
def test_what_reads_as_a_formula_is_text(formula: str, blank: str) -> None:
    assert cell(blank + formula) == f"'{blank}{formula}"


@pytest.mark.parametrize("text", ["a", "", " a", "a=1", "support-bot@2", "3", "Acmé", "'=1"])
def test_other_text_is_left_alone(text: str) -> None:
    assert cell(text) == text


def test_numbers_are_numbers() -> None:
    row = {
        "a": -5,
        "b": Decimal("-0.000001"),
        "c": None,
        "d": True,
        "e": datetime(2026, 1, 1, tzinfo=UTC),
        "f": {"=": "="},
    }
    assert [cell(value) for value in row.values()] == [
        "-5", "-0.000001", "", "True", "2026-01-01T00:00:00+00:00", '{"=": "="}',
    ]  # fmt: skip


@given(st.lists(st.text(st.characters(codec="utf-8")), min_size=1, max_size=4))
def test_every_text_comes_back(texts: list[str]) -> None:
    """Whatever separates cells, rows or quotes: as many cells as there were, each with its text."""
    columns = [f"c{n}" for n in range(len(texts))]
    row: dict[str, Any] = dict(zip(columns, texts, strict=True))
    _, found = csv.reader(StringIO("".join(csv_lines(columns, [row])), newline=""))
    assert [each.removeprefix("'") for each in found] == [text.removeprefix("'") for text in texts]
