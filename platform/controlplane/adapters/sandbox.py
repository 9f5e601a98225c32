"""The format check in a process of its own, with bounds on memory and time, without network or a secret in reach."""

import json
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from django.conf import settings

from controlplane.adapters import check_child
from engine.adapters import format as adapter_format
from engine.adapters.format import AdapterRefused, Problem

_WHERE: Final = "the upload"
_REMEDY: Final = "Save the adapter again with PEFT's save_pretrained, and upload that; if it stays so, ask for help."
# Both packages, wherever they are installed.
_PATH: Final = ":".join(str(Path(str(module.__file__)).parents[2]) for module in (check_child, adapter_format))


@dataclass(frozen=True)
class Checked:
    """An adapter whose files are right. rank: the highest of any module. invocation: tokens that switch it on."""

    digest: str
    rank: int
    target_modules: tuple[str, ...]
    invocation: tuple[int, ...] = ()


class CheckKilled(Exception):
    """Somebody else ended the child (a machine out of memory, say): the check may be tried again."""


def read_adapter(folder: Path) -> Checked:
    """Raises AdapterRefused, also for a check that breaks a bound or its parser; OSError or CheckKilled where the
    machine is at fault."""
    seconds = settings.CHECK_SECONDS
    order = {
        "folder": str(folder),
        "model_dir": str(settings.MODEL_DIR),
        "limits": {
            "max_rank": settings.MAX_RANK,
            "max_bytes": settings.MAX_ADAPTER_BYTES,
            "max_saved_bytes": settings.MAX_SAVED_BYTES,
        },
        "memory_bytes": settings.CHECK_MEMORY_BYTES,
        "seconds": seconds,
    }
    try:
        # A machine that is busy gives the child less than its processor time: the clock has patience.
        ended = subprocess.run(
            [sys.executable, "-B", "-P", "-S", "-m", check_child.__name__],
            input=json.dumps(order).encode(),
            capture_output=True,
            timeout=4 * seconds,
            env={"PYTHONPATH": _PATH, "LC_ALL": "C.UTF-8"},
            cwd="/",
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise _over("time", f"more than {4 * seconds} s") from None
    return _read_outcome(ended.returncode, ended.stdout)


def _read_outcome(code: int, stdout: bytes) -> Checked:
    if code == -signal.SIGXCPU:
        raise _over("time", f"more than {settings.CHECK_SECONDS} s of processor time")
    if code == -signal.SIGKILL:
        raise CheckKilled
    if code:
        raise _refused("check_failed", f"files that end the check ({_way_out(code)})", "files that can be read")
    outcome: dict[str, Any] = json.loads(stdout)
    if "problems" in outcome:
        raise AdapterRefused(Problem(**each) for each in outcome["problems"])
    if "away" in outcome:
        raise OSError(outcome["away"])
    if "over" in outcome:
        raise _over("memory", f"more than {settings.CHECK_MEMORY_BYTES} bytes of memory")
    spec = outcome["spec"]
    return Checked(spec["digest"], spec["rank"], tuple(spec["target_modules"]), tuple(spec["invocation"]))


def _way_out(code: int) -> str:
    return f"status {code}" if code > 0 else signal.Signals(-code).name


def _over(what: str, found: str) -> AdapterRefused:
    return _refused("check_over_limit", f"files whose check takes {found}", f"a check within its bounds on {what}")


def _refused(code: str, found: str, expected: str) -> AdapterRefused:
    return AdapterRefused([Problem(code, _WHERE, found, expected, _REMEDY)])
