"""Typed readers of environment variables, and the run file that a live local stack leaves in its home."""

import json
import os
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


class BadSetting(ValueError):
    """An environment variable that cannot be used; the text names it, the value and the remedy."""


def env_str(name: str, default: str) -> str:
    return os.environ.get(name) or default


def env_int(name: str, default: int) -> int:
    raw = os.environ.get(name)
    if not raw:
        return default
    try:
        return int(raw)
    except ValueError:
        raise BadSetting(f"{name}={raw!r} is not a whole number; unset it to use {default}") from None


def env_bool(name: str, default: bool) -> bool:
    raw = os.environ.get(name, "").lower()
    if raw in {"", "1", "true", "yes", "on", "0", "false", "no", "off"}:
        return default if not raw else raw in {"1", "true", "yes", "on"}
    raise BadSetting(f"{name}={raw!r} is neither true nor false; use 1 or 0")


def home() -> Path:
    """VENEER_HOME: everything the local stack keeps. Default: `.veneer` beside the code."""
    return Path(env_str("VENEER_HOME", str(ROOT / ".veneer"))).expanduser().absolute()


def run_file(folder: Path) -> dict[str, Any]:
    """What the running local stack says of itself (addresses, secrets), so that `manage.py check_books` and friends
    find it from another terminal. Empty when nothing runs there."""
    try:
        found: dict[str, Any] = json.loads((folder / "run" / "stack.json").read_text())
    except (FileNotFoundError, PermissionError, json.JSONDecodeError):
        return {}
    return found
