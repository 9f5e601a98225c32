"""Evaluations as their tenant sees them, without an engine: who may begin one, of what, how many, and how they end."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.test import TestCase
from django.utils import timezone

from controlplane.adapters import evaluations
from controlplane.adapters.evaluation_models import Evaluation, EvaluationCase
from controlplane.adapters.evaluations import KEY_NAME, RUN_EVALUATION
from controlplane.adapters.tasks import resume_evaluations, sweep
from controlplane.celery import app
from tenants.key_services import Reach, issue_key
from tenants.models import ApiKey, AuditRow
from tests.controlplane.adapters.conftest import upload
from tests.controlplane.adapters.peft_folder import BASE, peft_folder
from tests.controlplane.conftest import Api, Cast, with_key


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, tuple[str, ...]]]:
    found: list[tuple[str, tuple[str, ...]]] = []
    monkeypatch.setattr(app, "send_task", lambda name, args: found.append((name, args)))
    return found


@pytest.fixture
def pirate(owner: Api, places: Path) -> str:
    """Two ready versions."""
    upload(owner, "pirate")
    upload(owner, "pirate", peft_folder(seed=1))
    return str(owner.get("adapters")[1]["data"][0]["id"])


@pytest.fixture
def prompts(owner: Api, pirate: str) -> str:
    body = {"name": "smoke", "prompts": [{"prompt": "Ahoy", "contains": "matey"}, {"prompt": "Where to?"}]}
    return str(owner.post(f"adapters/{pirate}/prompt-sets", body)[1]["id"])


def start(api: Api, adapter: str, prompts: str, **more: Any) -> tuple[int, Any]:
    body = {"prompt_set": prompts, "candidate": 2, "baseline": 1, **more}
    with TestCase.captureOnCommitCallbacks(execute=True):
        return api.post(f"adapters/{adapter}/evaluations", body)


def test_an_evaluation_begins_and_shows_what_it_asks(
    owner: Api, pirate: str, prompts: str, sent: list[tuple[str, tuple[str, ...]]]
) -> None:
    status, row = start(owner, pirate, prompts)
    assert status == 202, row
    assert (row["state"], row["total"], row["done"], row["candidate"], row["baseline"]) == ("running", 2, 0, 2, 1)
    assert sent == [(RUN_EVALUATION, (row["id"],))]
    status, found = owner.get(f"evaluations/{row['id']}")
    cases = found.pop("cases")
    assert (status, found) == (200, row)
    assert [case["prompt"]["prompt"] for case in cases] == ["Ahoy", "Where to?"]
    assert {(case["candidate"], case["baseline"], case["differs"]) for case in cases} == {(None, None, None)}
    assert owner.get(f"adapters/{pirate}/evaluations")[1] == {"data": [row], "next": None}
    [audit] = AuditRow.objects.filter(target=row["id"])
    details = {"adapter": pirate, "prompt_set": prompts, "candidate": 2, "baseline": 1}
    assert (audit.action, audit.details) == ("evaluation.start", details)


def test_people_ask_by_a_key_that_opens_nothing_and_programs_by_their_own(
    owner: Api, cast: Cast, pirate: str, prompts: str, sent: list[Any]
) -> None:
    for _ in range(2):
        assert start(owner, pirate, prompts, baseline=None)[0] == 202
    assert start(with_key(cast.acme_key), pirate, prompts)[0] == 202
    [key] = ApiKey.objects.filter(tenant=cast.acme, name=KEY_NAME)
    assert (key.scopes, key.hidden) == ([], False)
    own = ApiKey.objects.get(tenant=cast.acme, name="acme program")
    assert list(Evaluation.objects.order_by("created_at").values_list("key_id", flat=True)) == [key.id, key.id, own.id]
    for evaluation in Evaluation.objects.all():
        owner.post(f"evaluations/{evaluation.id}/cancel")
    owner.post(f"keys/{key.id}/revoke")
    assert start(owner, pirate, prompts)[0] == 202
    assert ApiKey.objects.filter(tenant=cast.acme, name=KEY_NAME).count() == 2


@pytest.mark.parametrize(
    ("wrong", "status", "param"),
    [
        ({"candidate": 3}, 400, "candidate"), ({"baseline": 9}, 400, "baseline"), ({"baseline": 2}, 400, "baseline"),
        ({"candidate": 0}, 400, "candidate"), ({"candidate": None}, 400, "candidate"),
        ({"candidate": 2**40}, 400, "candidate"), ({"max_tokens": 0}, 400, "max_tokens"),
        ({"max_tokens": 1025}, 400, "max_tokens"), ({"prompt_set": "pst_none"}, 400, "prompt_set"),
        ({"prompt_set": "a\0"}, 400, "prompt_set"), ({"temperature": 1}, 400, "temperature"),
    ],
)  # fmt: skip
def test_what_cannot_be_asked_is_refused(
    owner: Api, pirate: str, prompts: str, sent: list[Any], wrong: dict[str, Any], status: int, param: str
) -> None:
    found, body = start(owner, pirate, prompts, **wrong)
    assert (found, body["error"]["param"]) == (status, param), body
    assert (sent, Evaluation.objects.count()) == ([], 0)


def test_a_baseline_has_to_be_named_even_if_it_is_the_base_model(owner: Api, pirate: str, prompts: str) -> None:
    status, body = owner.post(f"adapters/{pirate}/evaluations", {"prompt_set": prompts, "candidate": 2})
    assert (status, body["error"]["param"]) == (400, "baseline")


def test_a_version_that_is_not_ready_is_not_asked(owner: Api, pirate: str, prompts: str) -> None:
    assert upload(owner, "pirate", peft_folder(peft_type="IA3"))["state"] == "rejected"
    status, body = start(owner, pirate, prompts, candidate=3)
    assert (status, body["error"]["code"]) == (409, "version_not_ready")


def test_so_many_at_once_and_so_many_kept(
    owner: Api, pirate: str, prompts: str, sent: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evaluations, "MAX_RUNNING", 1)
    first = start(owner, pirate, prompts)[1]["id"]
    status, body = start(owner, pirate, prompts)
    assert (status, body["error"]["code"]) == (409, "too_many_evaluations")
    assert owner.post(f"evaluations/{first}/cancel")[1]["state"] == "cancelled"
    monkeypatch.setattr(evaluations, "MAX_KEPT", 2)
    second = start(owner, pirate, prompts)[1]["id"]
    owner.post(f"evaluations/{second}/cancel")
    assert start(owner, pirate, prompts)[0] == 409
    assert owner.delete(f"evaluations/{first}")[0] == 204
    assert start(owner, pirate, prompts)[0] == 202


def test_it_is_cancelled_once_and_deleted_when_it_has_ended(
    owner: Api, pirate: str, prompts: str, sent: list[Any]
) -> None:
    made = start(owner, pirate, prompts)[1]["id"]
    status, body = owner.delete(f"evaluations/{made}")
    assert (status, body["error"]["code"]) == (409, "evaluation_running")
    cancelled = owner.post(f"evaluations/{made}/cancel")[1]
    assert cancelled["ended_at"] is not None
    assert owner.post(f"evaluations/{made}/cancel") == (200, cancelled)
    assert AuditRow.objects.filter(action="evaluation.cancel", target=made).count() == 1
    assert owner.delete(f"evaluations/{made}") == (204, None)
    assert owner.get(f"evaluations/{made}")[0] == 404
    assert not EvaluationCase.objects.exists()


def test_it_outlives_its_set_and_goes_with_its_adapter(owner: Api, pirate: str, prompts: str, sent: list[Any]) -> None:
    made = start(owner, pirate, prompts)[1]["id"]
    assert owner.delete(f"prompt-sets/{prompts}")[0] == 204
    found = owner.get(f"evaluations/{made}")[1]
    assert (found["prompt_set"], found["prompt_set_name"], len(found["cases"])) == (None, "smoke", 2)
    assert owner.delete(f"adapters/{pirate}")[0] == 204
    assert owner.get(f"evaluations/{made}")[0] == 404
    assert not Evaluation.objects.exists()


def test_who_starts_one_needs_to_be_allowed_to_ask_the_models(
    cast: Cast, owner: Api, pirate: str, prompts: str, sent: list[Any]
) -> None:
    def key(scopes: tuple[str, ...], models: list[str] | None = None) -> Api:
        reach = Reach(allowed_models=models)
        return with_key(issue_key(tenant=cast.acme, name="x", scopes=scopes, actor=cast.owner, reach=reach)[1])

    assert start(key(("manage",)), pirate, prompts)[0] == 403
    assert start(key(("inference",)), pirate, prompts)[0] == 403
    both = ("manage", "inference")
    for models, baseline, status in (
        (["other"], 1, 403), ([], 1, 403), (["pirate"], None, 403), (["pirate", BASE], None, 202), (["pirate"], 1, 202),
    ):  # fmt: skip
        found, body = start(key(both, models), pirate, prompts, baseline=baseline)
        assert found == status, body
        if status == 403:
            assert body["error"]["code"] == "model_not_allowed"


def test_a_stranger_neither_sees_nor_ends_nor_starts_one(
    owner: Api, stranger: Api, pirate: str, prompts: str, sent: list[Any]
) -> None:
    made = start(owner, pirate, prompts)[1]["id"]
    assert start(stranger, pirate, prompts)[0] == 404
    assert stranger.get(f"adapters/{pirate}/evaluations")[0] == 404
    assert stranger.get(f"evaluations/{made}")[0] == 404
    assert stranger.post(f"evaluations/{made}/cancel")[0] == 404
    assert stranger.delete(f"evaluations/{made}")[0] == 404
    upload(stranger, "theirs")
    theirs = stranger.get("adapters")[1]["data"][0]["id"]
    status, body = start(stranger, theirs, prompts, candidate=1, baseline=None)
    assert (status, body["error"]["param"]) == (400, "prompt_set")  # another's set is none
    assert owner.get(f"evaluations/{made}")[1]["state"] == "running"


def test_one_that_no_worker_has_is_sent_again_and_old_ones_go(
    owner: Api, pirate: str, prompts: str, sent: list[Any]
) -> None:
    made = start(owner, pirate, prompts)[1]["id"]
    sent.clear()
    now = timezone.now()

    def resumed(**fields: Any) -> bool:
        sent.clear()
        Evaluation.objects.filter(id=made).update(**fields)
        with TestCase.captureOnCommitCallbacks(execute=True):
            resume_evaluations()
        return sent == [(RUN_EVALUATION, (made,))]

    assert not resumed()  # its task is on its way
    assert resumed(created_at=now - timedelta(minutes=1))
    assert not resumed(leased_until=now + timedelta(minutes=1))
    assert resumed(leased_until=now - timedelta(seconds=1))
    owner.post(f"evaluations/{made}/cancel")
    assert not resumed()
    Evaluation.objects.filter(id=made).update(ended_at=now - timedelta(days=89))
    sweep()
    assert Evaluation.objects.count() == 1
    Evaluation.objects.filter(id=made).update(ended_at=now - timedelta(days=91))
    sweep()
    assert Evaluation.objects.count() == 0
