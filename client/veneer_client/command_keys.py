"""`veneer keys`: list, issue, revoke."""

import click

from veneer_client.client import Veneer
from veneer_client.output import Output, table


@click.group()
def keys() -> None:
    """Issue keys for programs, and revoke them."""


@keys.command("list")
@click.pass_obj
def list_(output: Output) -> None:
    with Veneer.open() as api:
        found = [*api.keys()]
    rows = [[k.id, k.name, f"{k.prefix}...{k.last4}", " ".join(k.scopes), k.last_used_at, k.revoked_at] for k in found]
    output.show(found, table(["id", "name", "key", "scopes", "last used", "revoked"], rows))


@keys.command()
@click.argument("name")
@click.option("--scope", "scopes", multiple=True, default=["inference"], show_default=True, help="may be given again")
@click.option("--model", "models", multiple=True, help="that it may call; may be given again; without it, all")
@click.option("--expires", help="when it ends, ISO 8601")
@click.pass_obj
def issue(output: Output, name: str, scopes: tuple[str, ...], models: tuple[str, ...], expires: str | None) -> None:
    """Print a new key. It is shown this once."""
    with Veneer.open() as api:
        found = api.issue_key(name, scopes, models or None, expires)
    output.show(found, found.key)


@keys.command()
@click.argument("key_id")
@click.pass_obj
def revoke(output: Output, key_id: str) -> None:
    """End a key, within a second."""
    with Veneer.open() as api:
        found = api.revoke_key(key_id)
    output.show(found, f"{found.name} ({key_id}) is revoked")
