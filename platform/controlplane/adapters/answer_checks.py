"""Whether an answer is as its prompt expects: a text that it contains, a JSON schema that it follows.

A schema is a stranger's program (patterns, references), so it runs in a process of its own, with bounds.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

from controlplane.adapters import schema_child

SECONDS: Final = 5
MEMORY_BYTES: Final = 1 << 30
_PATH: Final = str(Path(str(schema_child.__file__)).parents[2])


def contains(expected: str | None, text: str) -> bool | None:
    return None if expected is None else expected in text


def follow_schema(schema: dict[str, Any] | None, texts: list[str]) -> list[bool | None]:
    """Of each text, whether it is JSON that the schema accepts. None: there is no schema, or it asks for too much."""
    if schema is None:
        return [None] * len(texts)
    order = {"schema": schema, "texts": texts, "memory_bytes": MEMORY_BYTES, "seconds": SECONDS}
    try:
        ended = subprocess.run(
            [sys.executable, "-B", "-P", "-m", schema_child.__name__],
            input=json.dumps(order).encode(),
            capture_output=True,
            timeout=4 * SECONDS,
            env={"PYTHONPATH": _PATH, "LC_ALL": "C.UTF-8"},
            cwd="/",
            check=False,
        )
    except subprocess.TimeoutExpired:
        return [None] * len(texts)
    found: list[bool | None] = json.loads(ended.stdout) if ended.returncode == 0 else [None] * len(texts)
    return found


def passed(*verdicts: bool | None) -> bool | None:
    """All of those that were made. None: none was."""
    made = [verdict for verdict in verdicts if verdict is not None]
    return all(made) if made else None
