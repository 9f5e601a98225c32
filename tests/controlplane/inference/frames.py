"""Server-sent events, read strictly."""

import json


def frames_of(raw: str) -> list[dict]:
    """Every frame is one `data:` line and a blank line, the last is [DONE]."""
    parts = raw.split("\n\n")
    assert parts[-1] == ""
    assert parts[-2] == "data: [DONE]"
    assert all(part.startswith("data: ") and "\n" not in part for part in parts[:-1])
    return [json.loads(part.removeprefix("data: ")) for part in parts[:-2]]
