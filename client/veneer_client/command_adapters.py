"""`veneer adapters`: push, pull, list, promote, rollback."""

import sys
from pathlib import Path

import click

from veneer_client.client import Veneer
from veneer_client.models import AdapterShape, VersionShape
from veneer_client.output import Output, table


@click.group()
def adapters() -> None:
    """Bring adapters in, release them, take them back."""


@adapters.command("list")
@click.option("--search", help="a part of the name")
@click.pass_obj
def list_(output: Output, search: str | None) -> None:
    """Adapters, their newest version and what their names answer with."""
    with Veneer.open() as api:
        found = [*api.adapters(search)]
    rows = [[a.name, a.state, max((v.number for v in a.versions), default=None), _answers(a)] for a in found]
    output.show(found, table(["name", "state", "newest", "answers with"], rows))


@adapters.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--name", required=True, help="of the adapter; a new version where it exists")
@click.option("--base-model", help="by default the one that adapter_config.json names")
@click.option("--wait", is_flag=True, help="until the version is checked; ends with 1 where it is rejected")
@click.pass_obj
def push(output: Output, folder: Path, name: str, base_model: str | None, wait: bool) -> None:
    """Upload what PEFT's save_pretrained wrote to FOLDER, as a new version. An interrupted push goes on."""
    with Veneer.open() as api:
        version = api.push(folder, name, base_model)
        version = api.checked(version.id) if wait else version
    output.show(version, f"{name}@{version.number} is {version.state}\n{_report(version)}".rstrip())
    if version.state == "rejected":
        sys.exit(1)


@adapters.command()
@click.argument("name")
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.option("--version", "number", type=int, help="by default the newest")
@click.pass_obj
def pull(output: Output, name: str, folder: Path, number: int | None) -> None:
    """Write the files of a version to FOLDER, as they were uploaded."""
    with Veneer.open() as api:
        version = _version(api.adapter(name), number)
        written = api.pull(version, folder)
    output.show(version, "\n".join(map(str, written)))


@adapters.command()
@click.argument("name")
@click.option("--version", "number", type=int, required=True)
@click.option("--canary", type=click.IntRange(1, 99), help="percent of its traffic; without it, all")
@click.pass_obj
def promote(output: Output, name: str, number: int, canary: int | None) -> None:
    """Let the name answer with a version, for all or for a part of its traffic."""
    with Veneer.open() as api:
        adapter = api.promote(api.adapter(name), number, canary)
    output.show(adapter, f"{name} answers with {_answers(adapter)}")


@adapters.command()
@click.argument("name")
@click.pass_obj
def rollback(output: Output, name: str) -> None:
    """Let the name answer as before its last change."""
    with Veneer.open() as api:
        adapter = api.rollback(api.adapter(name))
    output.show(adapter, f"{name} answers with {_answers(adapter)}")


def _version(adapter: AdapterShape, number: int | None) -> VersionShape:
    known = {version.number: version for version in adapter.versions}
    if not known:
        raise ValueError(f"{adapter.name} has no version")
    if number is not None and number not in known:
        raise ValueError(f"{adapter.name} has no version {number}: it has {', '.join(map(str, sorted(known)))}")
    return known[max(known) if number is None else number]


def _answers(adapter: AdapterShape) -> str:
    splits = adapter.alias.splits if adapter.alias else []
    total = sum(split.weight for split in splits)
    return ", ".join(f"version {split.version} ({100 * split.weight / total:g} %)" for split in splits) or "nothing"


def _report(version: VersionShape) -> str:
    problems = version.report.problems if version.report else []
    return "\n".join(f"  {p.where}: found {p.found}, expected {p.expected}. {p.remedy}" for p in problems)
