"""The engine's process, where this machine's own supervisor keeps it: whoever ends it gets it started again."""

import os
import signal
from pathlib import Path

from django.conf import settings

from controlplane.env import run_file

CHILD = "engine"  # its name among the supervisor's children


def own_engine() -> int | None:
    """The pid; None where no stack of this home runs the engine that we talk to."""
    stack = run_file(Path(settings.HOME))
    pid = stack.get("pids", {}).get(CHILD)
    if stack.get("VENEER_ENGINE_URL") != settings.ENGINE_URL or not isinstance(pid, int):
        return None
    return pid if _is_engine(pid) else None


def restart_own_engine() -> bool:
    """Ask it to end; its supervisor does the rest. False: it is not ours."""
    pid = own_engine()
    if pid is None:
        return False
    try:
        os.kill(pid, signal.SIGTERM)
    except ProcessLookupError:
        return False
    return True


def _is_engine(pid: int) -> bool:
    """A stack that was killed leaves its file, and its pids may be others' by now."""
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return settings.ENGINE_URL.encode() in command
