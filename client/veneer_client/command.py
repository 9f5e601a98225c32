"""The `veneer` command: what it is called with, how refusals end."""

import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import click

from veneer_client.client import Veneer
from veneer_client.command_adapters import adapters
from veneer_client.command_keys import keys
from veneer_client.login import Login, NotLoggedIn
from veneer_client.output import Output, table
from veneer_client.transport import Refused, Unreachable
from veneer_client.upload import NoAdapter

GROUPS = ("adapter", "key", "member", "model", "day", "month")


class Command(click.Group):
    """What went wrong is one line and status 1, never a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (Refused, Unreachable, NotLoggedIn, NoAdapter, TimeoutError, ValueError, OSError) as error:
            click.echo(f"veneer: {error}", err=True)
            sys.exit(1)


@click.group(cls=Command, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--json", "as_json", is_flag=True, help="print what the API answered")
@click.version_option(package_name="veneer-client")
@click.pass_context
def veneer(ctx: click.Context, as_json: bool) -> None:
    """Ship adapters to Veneer, and read what they cost."""
    ctx.obj = Output(as_json)


veneer.add_command(adapters)
veneer.add_command(keys)


@veneer.command()
@click.option("--url", required=True, help="the console's address, such as http://127.0.0.1:8000")
@click.option("--key", envvar="VENEER_API_KEY", help="of scope `manage`; asked for where it is not in VENEER_API_KEY")
@click.pass_obj
def login(output: Output, url: str, key: str | None) -> None:
    """Keep an address and a key for the other commands."""
    found = Login(url, key or click.prompt("API key", hide_input=True))
    with Veneer(found.url, found.key) as api:
        next(api.adapters(), None)  # a key that may not read them is of no use here
    output.say(f"Logged in to {url}; kept in {found.save()}, which only you can read.")


@veneer.command()
@click.option("--days", type=click.IntRange(1, 366), default=30, show_default=True)
@click.option("--by", type=click.Choice(GROUPS), default="adapter", show_default=True)
@click.option("--zone", default="UTC", show_default=True, help="time zone of days and months, such as Europe/Berlin")
@click.pass_obj
def usage(output: Output, days: int, by: str, zone: str) -> None:
    """Tokens, what was paid for them, and what they cost to make."""
    until = datetime.now(UTC)
    with Veneer.open() as api:
        found = api.usage((until - timedelta(days=days)).isoformat(), until.isoformat(), by=by, zone=zone)
    figures: Callable[[Any], list[object]] = lambda n: [  # noqa: E731 - two lines of one table
        n.requests, n.prompt_tokens, n.cached_tokens, n.completion_tokens, n.amount, n.amount_per_1m, n.device_seconds,
    ]  # fmt: skip
    head = [by, "requests", "prompt", "cached", "answered", found.currency, "per 1M", "device s"]
    rows = [[group.label or group.group, *figures(group)] for group in found.data]
    output.show(found, table(head, [*rows, ["total", *figures(found.total)]]))
