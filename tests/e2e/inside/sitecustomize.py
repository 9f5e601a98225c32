"""In every Python process of a stack under test: it dies, or kills another, as it comes to a chosen point.

A point is a function of the product, `before` or `after` its n-th call. It is armed by a file of its name in
VENEER_TEST_DEATHS, which holds the id of the process to kill (0: the one that gets there) and goes away as the point
is reached. The product knows nothing of this: the functions are wrapped as their modules are imported.
"""

import functools
import importlib.abc
import importlib.machinery
import os
import signal
import sys
import time
from collections import Counter
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

FOLDER = Path(os.environ.get("VENEER_TEST_DEATHS", "/nonexistent"))
POINTS = {
    "controlplane.inference.services": ["_hold_all"],
    "controlplane.inference.driver": ["drive", "parted", "_settle_surely"],
    "controlplane.inference.run": ["Run.finish"],
    "engine.metering.journal": ["Journal._write_endings"],
    "controlplane.inference.engine_sync": ["EngineCalls.ack_journal"],
    "controlplane.billing.delivery": ["send"],
    "controlplane.billing.statements": ["issue_invoice"],
    "controlplane.billing.operator_api": ["close_period"],
    "controlplane.billing.payment_booking": ["_book"],
    "controlplane.billing.payment_api": ["take_notice"],
    "controlplane.adapters.uploads": ["record_part"],
    "controlplane.adapters.checks": ["publish_files"],
    "controlplane.adapters.aliases": ["_replace"],
    "controlplane.api_view": ["answer_once"],
}
# What waits for minutes elsewhere waits for seconds here.
SHORTER = {
    "controlplane.embedded.supervisor": {"LONGEST_DELAY": 0.2},
    "controlplane.adapters.checks": {"STUCK_AFTER": timedelta(seconds=2)},
    "controlplane.billing.delivery": {"LEASE": timedelta(seconds=2)},
}
_calls: Counter[tuple[str, int]] = Counter()


def reached(point: str) -> None:
    for armed in FOLDER.glob(f"{point}:*"):
        with suppress(FileNotFoundError):  # somebody else was there first
            _calls[armed.name, armed.stat().st_mtime_ns] += 1
            if _calls[armed.name, armed.stat().st_mtime_ns] == int(armed.name.rpartition(":")[2]):
                victim = int(armed.read_text())
                armed.unlink()
                os.kill(victim or os.getpid(), signal.SIGKILL)
                time.sleep(0.1)  # it is gone before this process goes on


def watched(name, function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        reached(f"{name}:before")
        result = function(*args, **kwargs)
        reached(f"{name}:after")
        return result

    return wrapper


def change(module) -> None:
    for path in POINTS.get(module.__name__, ()):
        *owners, last = path.split(".")
        owner = functools.reduce(getattr, owners, module)
        setattr(owner, last, watched(f"{module.__name__}:{path}", getattr(owner, last)))
    for name, value in SHORTER.get(module.__name__, {}).items():
        assert hasattr(module, name), name
        setattr(module, name, value)


class Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, fullname, path=None, target=None):
        if fullname not in POINTS and fullname not in SHORTER:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        execute = spec.loader.exec_module

        def exec_module(module) -> None:
            execute(module)
            change(module)

        spec.loader.exec_module = exec_module
        return spec


if FOLDER.is_dir():
    sys.meta_path.insert(0, Finder())
