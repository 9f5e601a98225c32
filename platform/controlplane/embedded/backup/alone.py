"""A command that needs the database while no stack runs: the home's own PostgreSQL comes up for it alone."""

import os
from pathlib import Path

from django.conf import settings

from controlplane.embedded.blueprint import Blueprint
from controlplane.embedded.credentials import Credentials
from controlplane.embedded.home import Home
from controlplane.embedded.options import read_options
from controlplane.embedded.problems import StopRequested
from controlplane.embedded.stack import Stack
from controlplane.embedded.terminal import show
from controlplane.env import run_file


def has_database() -> bool:
    """One of the operator's, or that of a stack that runs in this home."""
    return bool(os.environ.get("DATABASE_URL") or run_file(settings.HOME).get("DATABASE_URL"))


def run_beside_own_database(*arguments: str) -> None:
    """A management command, with the home's PostgreSQL up while it runs; its words are shown after it.
    Raises StackProblem."""
    home = Home(Path(settings.HOME))
    home.prepare()
    log = home.logs / f"{arguments[0]}.log"
    log.unlink(missing_ok=True)
    with home.lock():
        stack = Stack(Blueprint(home, read_options(home, demo_data=False), Credentials(home.secrets)))
        stack.supervisor.stop_on_signals()
        try:
            stack.run_beside_stores(*arguments)
            show(log.read_text().strip())
        except StopRequested:
            pass
        finally:
            stack.stop()
