"""Lines of an input file, however its bytes are cut: those that are requests, and why the others are none."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.batches.input_lines import Fault, Line, LineTooLong, bound_of, parse_line, raw_lines, read_line

URL = "/v1/completions"
GOOD = {"custom_id": "a", "method": "POST", "url": URL, "body": {"model": "m", "prompt": "x"}}


@given(st.binary(max_size=60).map(lambda raw: raw.replace(b"x", b"\n")), st.integers(1, 7))
def test_cutting_changes_nothing(content: bytes, size: int) -> None:
    chunks = [content[i : i + size] for i in range(0, len(content), size)]
    naive = [(i, line.strip()) for i, line in enumerate(content.split(b"\n"), 1) if line.strip()]
    assert list(raw_lines(chunks)) == naive


def test_a_byte_order_mark_is_no_part_of_the_first_line() -> None:
    assert list(raw_lines([b"\xef\xbb\xbfone\r\n", b"\n two"])) == [(1, b"one"), (3, b"two")]


def test_a_line_without_end_is_not_collected(settings: Any) -> None:
    settings.MAX_BODY_BYTES = 100
    with pytest.raises(LineTooLong) as caught:
        list(raw_lines(iter([b"short\n", b"y" * 60, b"y" * 60, b"never read"])))
    assert caught.value.number == 2
    with pytest.raises(LineTooLong):
        list(raw_lines([b"y" * 101 + b"\n"]))


BAD: dict[str, tuple[Any, str, str | None]] = {
    "no JSON": (b"{", "invalid_json_line", None),
    "no object": (b"[]", "invalid_json_line", None),
    "not UTF-8": (b'{"custom_id": "\xff"}', "invalid_json_line", None),
    "no custom_id": ({"custom_id": ...}, "invalid_json_line", None),
    "number for custom_id": ({"custom_id": 1}, "invalid_json_line", None),
    "empty custom_id": ({"custom_id": ""}, "invalid_custom_id", "custom_id"),
    "long custom_id": ({"custom_id": "x" * 513}, "invalid_custom_id", "custom_id"),
    "NUL in custom_id": ({"custom_id": "a\0"}, "invalid_custom_id", "custom_id"),
    "GET": ({"method": "GET"}, "invalid_method", "method"),
    "another endpoint": ({"url": "/v1/embeddings"}, "invalid_url", "url"),
    "no endpoint": ({"url": "/v1/batches"}, "invalid_url", "url"),
    "no body": ({"body": ...}, "invalid_json_line", None),
    "a text for body": ({"body": "x"}, "invalid_body", "body"),
    "null for body": ({"body": None}, "invalid_body", "body"),
    "a list for body": ({"body": []}, "invalid_body", "body"),
    "deep nesting": (b'{"custom_id": ' + b"[" * 100_000, "invalid_json_line", None),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_no_request_is_named(name: str) -> None:
    change, code, param = BAD[name]
    if isinstance(change, dict):
        change = json.dumps({key: value for key, value in (GOOD | change).items() if value is not ...}).encode()
    found = read_line(7, change, URL, set())
    assert isinstance(found, Fault)
    assert (found.line, found.code, found.param) == (7, code, param)
    assert found.message.startswith("Line 7")


def test_custom_ids_are_unique() -> None:
    known: set[str] = set()
    raw = json.dumps(GOOD).encode()
    assert isinstance(read_line(1, raw, URL, known), Line)
    again = read_line(2, raw, URL, known)
    assert isinstance(again, Fault)
    assert (again.code, again.line) == ("duplicate_custom_id", 2)
    assert parse_line(raw) == read_line(1, raw, URL, set())


def bound(url: str = URL, **body: Any) -> Any:
    line = Line("a", "POST", url, json.dumps({"model": "m"} | body).encode())  # type: ignore[arg-type]
    return bound_of(line, 100)


def test_the_bound_covers_every_text_that_may_be_generated(settings: Any) -> None:
    settings.DEFAULT_MAX_TOKENS = 30
    assert bound(prompt="x").completion_tokens == 30
    assert bound(prompt="x", max_tokens=5).completion_tokens == 5
    assert bound(prompt="x", max_tokens=5, max_completion_tokens=7).completion_tokens == 7
    assert bound(prompt="x", max_tokens=10**30) is None or bound(prompt="x", max_tokens=10**15).completion_tokens == 100
    assert bound(prompt=["x", "y"], max_tokens=5, n=2, best_of=3).completion_tokens == 30
    assert bound(prompt=[1, 2, 3], max_tokens=5).completion_tokens == 5
    assert bound(prompt=[[1], [2]], max_tokens=5).completion_tokens == 10
    assert bound("/v1/embeddings", input="x").completion_tokens == 0
    assert bound(prompt="x" * 90).prompt_tokens == 100
    assert bound(prompt=["x" * 90, "y" * 90]).prompt_tokens == 200
    assert bound("/v1/embeddings", input=["x" * 900]).prompt_tokens > 900


@pytest.mark.parametrize("body", [{"model": 1}, {"model": "m", "max_tokens": "x"}, {"prompt": "x"}, {"n": []}])
def test_a_body_that_cannot_run_reserves_nothing(body: dict[str, Any]) -> None:
    line = Line("a", "POST", URL, json.dumps(body).encode())  # type: ignore[arg-type]
    assert bound_of(line, 100) is None
