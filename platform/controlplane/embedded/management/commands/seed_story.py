"""`manage.py seed_story` (what `make story` runs): a month of four tenants' traffic, for a stack that is up."""

from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from controlplane.embedded.credentials import OPERATOR_EMAIL, Credentials
from controlplane.embedded.home import Home
from controlplane.embedded.month.cast import COMPANIES
from controlplane.embedded.month.guard import check_may_tell
from controlplane.embedded.month.telling import story_days, tell
from controlplane.embedded.month.workers import Workers
from controlplane.embedded.problems import StackProblem
from controlplane.embedded.terminal import Stopwatch
from controlplane.inference.engine_faults import EngineGone
from controlplane.inference.engine_sync import EngineCalls

_ENGINE_SECONDS = 30.0


class Command(BaseCommand):
    help = "Fill a database with a month of believable traffic, through the pipeline. The same seed, the same figures."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--seed", type=int, default=1, help="which month (1)")
        parser.add_argument("--days", type=int, help="of the last so many days; from the first of last month, if not")
        parser.add_argument("--scale", type=float, default=1.0, help="times the usual number of requests (1)")
        parser.add_argument(
            "--beside-others", action="store_true", help="tell it on a database that has tenants of its own, too"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        took, credentials = Stopwatch(), Credentials(Home(settings.HOME).secrets)
        if not 0 < options["scale"] <= 10:
            raise CommandError(f"--scale is {options['scale']}: use more than 0, and at most 10")
        if options["days"] is not None and not 2 <= options["days"] <= 62:
            raise CommandError(f"--days is {options['days']}: use 2 to 62")
        try:
            operator = check_may_tell(beside_others=options["beside_others"])
            days = story_days(options["seed"], timezone.now(), days=options["days"], scale=options["scale"])
            with EngineCalls(settings.ENGINE_URL, seconds=_ENGINE_SECONDS) as engine:
                served = engine.describe()
            told = tell(days, operator=operator, credentials=credentials, served=served, workers=Workers())
        except StackProblem as exc:
            raise CommandError(str(exc)) from exc
        except EngineGone as gone:
            raise CommandError(f"{gone}. The story needs a stack that is up: `make up` in another terminal.") from gone
        span = f"from {days.start:%d %B} to now"
        self.stdout.write(f"\n  The story is told: {told.generations:,} generations {span} ({took}).")
        self.stdout.write(logins(credentials))


def logins(credentials: Credentials) -> str:
    people = [("platform operator", OPERATOR_EMAIL, credentials.get("operator_password"))]
    for company in COMPANIES:
        email = company.email(company.owner.name)
        people.append((f"owner of {company.name}", email, credentials.get(company.password_name)))
    lines = [f"    {who:<28} {email:<28} {password or '(of another home)'}" for who, email, password in people]
    return "\n".join(["", f"  sign in at {settings.CONSOLE_URL} as", *lines, ""])
