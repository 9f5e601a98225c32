"""The audit log as owners, operators and spreadsheets read it."""

import csv
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.csv_export import cell, csv_lines
from tenants.audit import record_audit
from tenants.models import AuditRow
from tests.controlplane.conftest import Api, Cast


@pytest.fixture
def deeds(owner: Api, stranger: Api, cast: Cast) -> list[str]:
    """Two of Acme's owner, one of the operator at Acme, one of Globex: their targets."""
    ids = [api.post("keys", {"name": "k", "scopes": ["manage"]})[1]["id"] for api in (owner, stranger)]
    owner.post(f"keys/{ids[0]}/revoke")
    record_audit(tenant=cast.acme, actor=cast.operator.id, action="limits.set", target=cast.acme.id)
    return ids


def rows_of(api: Api, query: str = "") -> list[dict[str, Any]]:
    status, body = api.get(f"audit{query}")
    assert status == 200, body
    rows: list[dict[str, Any]] = body["data"]
    return rows


def test_a_tenant_sees_its_own_deeds_newest_first(owner: Api, deeds: list[str], cast: Cast) -> None:
    rows = rows_of(owner)
    assert [row["action"] for row in rows[:3]] == ["limits.set", "key.revoke", "key.issue"]
    assert rows[1] | {"id": 0, "at": ""} == {
        "id": 0, "at": "", "tenant_id": cast.acme.id, "actor": cast.owner.id, "actor_name": "owner@acme.example",
        "action": "key.revoke", "target": deeds[0], "details": {},
    }  # fmt: skip
    assert deeds[1] not in str(rows), "Globex's key"


def test_an_operator_has_no_name_for_a_tenant(owner: Api, deeds: list[str], cast: Cast) -> None:
    assert rows_of(owner)[0]["actor_name"] == "operator"
    assert cast.operator.email not in str(rows_of(owner))


@pytest.mark.parametrize(
    ("query", "actions"),
    [
        ("?action=key.revoke", ["key.revoke"]),
        ("?action=key.", ["key.revoke", "key.issue"]),
        ("?action=key", []),
        ("?actor=system", []),
        ("?target={key}&action=key.issue", ["key.issue"]),
        ("?to=2020-01-01T00:00:00Z", []),
        ("?from=2020-01-01T00:00:00Z&action=limits.set", ["limits.set"]),
    ],
)
def test_filters(owner: Api, deeds: list[str], cast: Cast, query: str, actions: list[str]) -> None:
    rows = rows_of(owner, query.format(key=deeds[0]))
    assert [row["action"] for row in rows if row["target"] in {deeds[0], cast.acme.id}] == actions


def test_a_time_is_half_open(owner: Api, deeds: list[str]) -> None:
    at = AuditRow.objects.get(action="key.revoke").at
    stamp, after = (each.strftime("%Y-%m-%dT%H:%M:%S.%fZ") for each in (at, at + timedelta(microseconds=1)))
    assert "key.revoke" not in str(rows_of(owner, f"?to={stamp}"))
    assert "key.revoke" in str(rows_of(owner, f"?from={stamp}&to={after}"))


@pytest.mark.parametrize("query", ["?from=yesterday", "?cursor=x", "?limit=0", "?actor=" + "x" * 65])
def test_a_wrong_filter_is_named(owner: Api, query: str) -> None:
    status, body = owner.get(f"audit{query}")
    assert (status, body["error"]["param"]) == (400, query[1:].partition("=")[0])


def test_the_operator_sees_all_and_can_choose(operator: Api, deeds: list[str], cast: Cast) -> None:
    status, body = operator.get("operator/audit?action=key.issue&limit=2")
    assert (status, {row["target"] for row in body["data"]}) == (200, set(deeds))
    body = operator.get(f"operator/audit?tenant={cast.globex.id}&action=key.issue&limit=1")[1]
    assert [row["target"] for row in body["data"]] == [deeds[1]]


def test_the_export_is_the_list_oldest_first(owner: Api, deeds: list[str]) -> None:
    response = owner.raw("GET", "audit/export?action=key.")
    assert response["Content-Type"] == "text/csv; charset=utf-8"
    lines = list(csv.DictReader(b"".join(response.streaming_content).decode().splitlines()))
    listed = rows_of(owner, "?action=key.")
    assert [(line["at"], line["target"], line["actor_name"]) for line in lines] == [
        (row["at"].replace("Z", "+00:00"), row["target"], row["actor_name"]) for row in reversed(listed)
    ]


@given(st.text())
def test_no_cell_is_a_formula_and_none_loses_its_text(text: str) -> None:
    """`=HYPERLINK(...)` as a key's name must not run in the spreadsheet of whoever audits it."""
    written = cell(text)
    assert not written.startswith(("=", "+", "-", "@", "\t", "\r", "\n"))
    assert written.removeprefix("'") == text.removeprefix("'")


def test_commas_quotes_and_newlines_stay_in_their_cell() -> None:
    rows = [{"a": 'x,"y"\nz', "b": -5}, {"a": None, "b": {"k": "ü"}}]
    lines = "".join(csv_lines(("a", "b"), rows))
    assert list(csv.reader(lines.splitlines(keepends=True))) == [
        ["a", "b"], ['x,"y"\nz', "-5"], ["", '{"k": "ü"}'],
    ]  # fmt: skip
