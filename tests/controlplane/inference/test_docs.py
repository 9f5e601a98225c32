"""The page about this API: its examples run as they stand, and it names every parameter that the door reads."""

import re
from pathlib import Path
from typing import Any

import pytest

from controlplane.inference.openapi import document
from tests.controlplane.inference.conftest import Caller, Served

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "api.md").read_text()
EXAMPLES = re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


def test_every_example_runs(
    stack: Served,
    caller: Caller,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    settings: Any,
    tmp_path: Path,
) -> None:
    """In their order, as a reader types them; each prints something."""
    settings.OBJECTS_DIR = tmp_path
    monkeypatch.setenv("OPENAI_BASE_URL", f"{stack.url}/v1")
    monkeypatch.setenv("OPENAI_API_KEY", caller.key)
    names: dict[str, object] = {}
    for example in EXAMPLES:
        exec(compile(example, "docs/api.md", "exec"), names)  # our own page
        assert capsys.readouterr().out.strip()
    assert len(EXAMPLES) >= 8
    names["client"].close()


@pytest.mark.parametrize("body", ["ChatBody", "CompletionBody"])
def test_every_parameter_is_on_the_page(body: str) -> None:
    missing = [
        name for name in document()["components"]["schemas"][body]["properties"] if not re.search(rf"`{name}\b", PAGE)
    ]
    assert missing == []
