"""Checks of answers: what passes, and that no schema can do more than fail to be checked."""

import http.server
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from controlplane.adapters import answer_checks
from controlplane.adapters.answer_checks import contains, follow_schema, passed

SHIP: dict[str, Any] = {
    "type": "object", "properties": {"name": {"type": "string"}, "guns": {"$ref": "#/$defs/count"}},
    "required": ["name"], "additionalProperties": False, "$defs": {"count": {"type": "integer", "minimum": 0}},
}  # fmt: skip


def test_a_text_is_contained_to_the_letter() -> None:
    assert (contains("Ahoy", "Ahoy there"), contains("ahoy", "Ahoy"), contains(None, "Ahoy")) == (True, False, None)


def test_an_answer_is_json_that_follows_the_schema_or_not() -> None:
    texts = ['{"name": "Pearl"}', ' {"name": "Pearl", "guns": 32}\n', '{"name": 1}', '{"name": "x", "guns": -1}',
             '{"name": "x", "sails": 1}', "Pearl", "", '```json\n{"name": "x"}\n```', '{"name": "x"} more']  # fmt: skip
    assert follow_schema(SHIP, texts) == [True, True] + [False] * 7
    assert follow_schema(None, texts) == [None] * len(texts)


def test_all_checks_that_were_made_must_pass() -> None:
    assert [passed(None, None), passed(True, None), passed(True, False), passed(None, False)] == [
        None,
        True,
        False,
        False,
    ]


HOSTILE: dict[str, dict[str, Any]] = {
    "a pattern that backtracks": {"pattern": "^(a|a|aa)+$"},
    "doubling references": {
        "$ref": "#/$defs/d0",
        "$defs": {f"d{i}": {"allOf": [{"$ref": f"#/$defs/d{i + 1}"}] * 2} for i in range(40)} | {"d40": True},
    },
    "a reference to itself": {"$ref": "#"},
    "a reference to nothing": {"$ref": "#/$defs/none"},
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_schema_is_not_checked_and_holds_nobody_up(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer_checks, "SECONDS", 1)
    assert follow_schema(HOSTILE[name], ['"' + "a" * 60 + 'b"']) == [None]


def test_a_deep_answer_is_not_checked_and_ends_nothing() -> None:
    assert follow_schema({"items": {"$ref": "#"}}, ["[" * 100_000, "[]"]) == [None, True]


@pytest.fixture
def listener() -> Iterator[tuple[str, list[str]]]:
    """Somewhere a reference might be fetched from."""
    asked: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"true")

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/schema", asked
        server.shutdown()


def test_no_reference_is_fetched(listener: tuple[str, list[str]]) -> None:
    """Such a schema is refused before it is kept; should one get past, it reaches nothing."""
    url, asked = listener
    assert follow_schema({"$ref": url}, ["1"]) == [None]
    assert asked == []
