"""Where the story may be told, and where it is refused before anything is written."""

from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from pytest_django import Settings

from controlplane.embedded.month.guard import check_may_tell
from controlplane.embedded.options import DEMO_MODEL
from controlplane.embedded.problems import StackProblem
from tenants.models import Tenant, User

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def demo_model(settings: Settings, tmp_path: Path) -> None:
    settings.MODEL_DIR, settings.HOME = tmp_path / DEMO_MODEL, tmp_path
    settings.ENGINE_URL = f"ipc://{tmp_path}/no-engine.sock"


@pytest.fixture
def operator() -> User:
    return User.objects.create(email="operator@veneer.example", is_operator=True)


def test_it_is_told_beside_the_demo_and_not_beside_tenants_of_ones_own(operator: User) -> None:
    Tenant.objects.create(slug="acme", name="Acme")
    assert check_may_tell(beside_others=False) == operator
    Tenant.objects.create(slug="real-customer", name="Real")
    with pytest.raises(StackProblem, match=r"real-customer.*--beside-others"):
        check_may_tell(beside_others=False)
    assert check_may_tell(beside_others=True) == operator


def test_it_is_not_told_twice_whatever_one_says(operator: User) -> None:
    Tenant.objects.create(slug="lexicon", name="Lexicon")
    with pytest.raises(StackProblem, match=r"lexicon: here already.*VENEER_HOME"):
        check_may_tell(beside_others=True)


def test_it_needs_an_operator() -> None:
    with pytest.raises(StackProblem, match="no operator"):
        check_may_tell(beside_others=False)


def test_it_needs_the_model_that_its_adapters_are_of(operator: User, settings: Settings) -> None:
    settings.MODEL_DIR = Path("/models/Other-1B")
    with pytest.raises(StackProblem, match=rf"Other-1B.*{DEMO_MODEL}"):
        check_may_tell(beside_others=False)


@pytest.mark.parametrize(("given", "told"), [
    ({"scale": 0.0}, "--scale is 0.0"), ({"scale": 99.0}, "--scale is 99.0"), ({"days": 1}, "--days is 1"),
    ({"days": 90}, "--days is 90"),
])  # fmt: skip
def test_what_cannot_be_told_is_refused_by_name(operator: User, given: dict[str, float], told: str) -> None:
    with pytest.raises(CommandError, match=told):
        call_command("seed_story", **given)


def test_without_an_engine_nothing_is_written(operator: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("controlplane.embedded.management.commands.seed_story._ENGINE_SECONDS", 0.2)
    with pytest.raises(CommandError, match=r"engine.*make up"):
        call_command("seed_story")
    assert not Tenant.objects.exists()
