"""deploy/compose.yaml runs what `make up` runs, and sets nothing that nobody reads."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from controlplane.embedded.blueprint import Blueprint
from controlplane.embedded.credentials import Credentials
from controlplane.embedded.home import Home
from controlplane.embedded.options import read_options

ROOT = Path(__file__).resolve().parents[2]
CODE = ("engine", "kernels", "platform", "tenants")
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text())
NOT_OURS = {"OMP_WAIT_POLICY"}  # OpenMP's own


def names_read() -> set[str]:
    text = "\n".join(path.read_text() for folder in CODE for path in (ROOT / folder).rglob("*.py"))
    return set(re.findall(r"\"([A-Z][A-Z0-9_]+)\"", text))


def test_every_variable_that_is_set_is_read() -> None:
    set_here = {name for service in COMPOSE["services"].values() for name in service.get("environment", {})}
    asked_for = set(re.findall(r"\$\{([A-Z_]+)", (ROOT / "deploy" / "compose.yaml").read_text()))
    assert len(set_here) > 10
    assert (set_here | asked_for) - NOT_OURS <= names_read()


@pytest.fixture
def blueprint(tmp_path: Path) -> Blueprint:
    home = Home(tmp_path)
    return Blueprint(home, read_options(home, demo_data=False), Credentials(home.secrets))


def test_each_process_is_started_as_make_up_starts_it(blueprint: Blueprint) -> None:
    children = [blueprint.engine(), *blueprint.workers(), *blueprint.web()]
    assert {child.name for child in children} | {"migrate"} == COMPOSE["services"].keys()
    for child in children:
        theirs = [_default(word) for word in COMPOSE["services"][child.name]["command"]]
        said = [word for word in child.command[1:] if word.startswith("-") or not is_local(word)]
        assert [word for word in said if word not in theirs] == [], child.name


def _default(word: str) -> str:
    return re.sub(r"\$\{[A-Z_]+:-([^}]*)\}", r"\1", word)


def is_local(word: str) -> bool:
    """An address, a folder, a port or a number of seconds: those are the machine's."""
    return "/" in word or bool(re.fullmatch(r"[\d.]+", word)) or word == ""


def test_the_owners_login_is_known_to_the_migration_alone() -> None:
    knows = [
        name for name, each in COMPOSE["services"].items() if "VENEER_MIGRATION_DATABASE_URL" in each["environment"]
    ]
    assert knows == ["migrate"]


def test_what_must_be_kept_is_on_the_volume() -> None:
    for name, service in COMPOSE["services"].items():
        assert "home:/data" in service["volumes"], name
    assert "VENEER_HOME=/data" in (ROOT / "deploy" / "Dockerfile").read_text()
