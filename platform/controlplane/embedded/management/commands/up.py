"""`manage.py up` (what `make up` runs): the whole stack on this machine, until Ctrl-C."""

import sys
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from controlplane.embedded.banner import banner
from controlplane.embedded.blueprint import Blueprint
from controlplane.embedded.credentials import Credentials
from controlplane.embedded.home import Home
from controlplane.embedded.options import check_options, compiler_warning, read_options
from controlplane.embedded.problems import StackProblem, StopRequested
from controlplane.embedded.stack import Stack
from controlplane.embedded.terminal import complain, say, show


class Command(BaseCommand):
    help = "Run PostgreSQL, Valkey, engine, worker, console and door under one supervisor, until Ctrl-C."
    requires_system_checks = ()  # the database is one of the children

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--no-demo-data", action="store_true", help="make no demo tenants, only the operator")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            self._run(demo_data=not options["no_demo_data"])
        except StackProblem as exc:
            complain(f"veneer: {exc}")
            sys.exit(1)

    def _run(self, *, demo_data: bool) -> None:
        home = Home(settings.HOME)
        chosen = read_options(home, demo_data=demo_data)
        home.prepare()
        with home.lock():
            check_options(chosen)
            if warning := compiler_warning():
                say(warning)
            blueprint = Blueprint(home, chosen, Credentials(home.secrets))
            stack = Stack(blueprint)
            stack.supervisor.stop_on_signals()
            try:
                stack.start()
                if chosen.demo_adapters:
                    stack.seed_adapters()
                stack.announce()
                show(banner(chosen, blueprint.credentials))
                stack.supervisor.watch()
            except StopRequested:
                pass
            finally:
                say("stopping")
                stack.stop()
