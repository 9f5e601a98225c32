"""A POST that is sent again: one effect, one answer, for one caller; and what is kept of it gives nothing away."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from datetime import timedelta
from typing import Any

import pytest
from django.db import connections
from django.test import Client
from django.utils import timezone

from controlplane.console import keys
from tenants.answers import KEPT_FOR, KeptAnswer, Place, forget_answers
from tenants.key_services import revoke_key
from tenants.lockout import ALLOWED
from tenants.models import ApiKey, Membership, Role, Tenant, User
from tests.controlplane.conftest import Api, Cast, signed_in, with_key
from tests.controlplane.console.test_secrets import every_table

ISSUE = {"name": "ci", "scopes": ["inference"]}


def again(api: Api, path: str, body: Any = None, key: str = "k-1") -> tuple[int, Any, bool]:
    """Status, body, and whether it is an answer given before."""
    response = api.raw("POST", path, body, headers={"Idempotency-Key": key})
    found = response.json() if response.content else None
    return response.status_code, found, response.headers.get("Idempotent-Replayed") == "true"


def named(tenant: Tenant, name: str = "ci") -> int:
    return ApiKey.objects.filter(tenant=tenant, name=name).count()


def test_the_second_is_answered_as_the_first_and_nothing_happens_again(owner: Api, cast: Cast) -> None:
    status, first, replayed = again(owner, "keys", ISSUE)
    assert (status, replayed) == (201, False)
    assert again(owner, "keys", ISSUE) == (201, first, True)
    assert named(cast.acme) == 1
    assert with_key(first["key"]).get("usage")[0] == 403  # the text that was shown twice is a key's


def test_an_answer_without_a_body_is_given_again(owner: Api, cast: Cast) -> None:
    row = owner.post("webhooks", {"url": "https://example.com/hook"})[1]
    path = f"webhooks/{row['id']}/test"
    assert again(owner, path) == (202, None, False)
    assert again(owner, path) == (202, None, True)


@pytest.mark.parametrize("body", [ISSUE | {"name": "other"}, ISSUE | {"expires_at": None}, None])
def test_another_body_under_the_same_key_is_refused(owner: Api, cast: Cast, body: Any) -> None:
    again(owner, "keys", ISSUE)
    status, answer, _ = again(owner, "keys", body)
    assert (status, answer["error"]["code"], answer["error"]["param"]) == (
        422, "idempotency_key_reused", "Idempotency-Key",
    )  # fmt: skip
    assert ApiKey.objects.filter(tenant=cast.acme).count() == 2  # with the cast's own


def test_nobody_gets_anothers_answer(owner: Api, cast: Cast, stranger: Api) -> None:
    """The same key and body by somebody of another tenant, by a colleague, by a program, and on another route."""
    mine = again(owner, "keys", ISSUE)[1]
    callers = [stranger, signed_in(cast.people[Role.ADMIN]), with_key(cast.acme_key), with_key(cast.globex_key)]
    theirs = [again(api, "keys", ISSUE) for api in callers]
    assert [(status, replayed) for status, _, replayed in theirs] == [(201, False)] * 4
    assert len({body["key"] for _, body, _ in theirs} | {mine["key"]}) == 5
    other = again(owner, f"keys/{mine['id']}/rotate", ISSUE)
    assert (other[0], other[2]) == (200, False)


def test_a_person_of_two_tenants_has_two_places(cast: Cast) -> None:
    Membership.objects.create(tenant=cast.globex, user=cast.owner, role=Role.OWNER)
    for tenant in (cast.acme, cast.globex):
        api = signed_in(cast.owner)
        api.headers["X-Veneer-Tenant"] = tenant.id
        assert again(api, "keys", ISSUE)[2] is False
        assert named(tenant) == 1


def test_a_refusal_had_no_effect_and_leaves_the_key_free(owner: Api, cast: Cast) -> None:
    assert again(owner, "keys", {"name": "ci", "scopes": []})[0] == 400
    assert again(owner, "keys", ISSUE)[0] == 201
    assert KeptAnswer.objects.count() == 1


def test_wrong_passwords_count_whatever_key_comes_with_them(owner: Api) -> None:
    tries = [again(owner, "account/totp", {"password": "no"}, key=f"k-{i}")[0] for i in range(ALLOWED + 1)]
    assert tries == [403] * ALLOWED + [429]


def test_what_broke_half_way_did_nothing(owner: Api, cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    owner.client.raise_request_exception = False
    with monkeypatch.context() as patch:
        patch.setattr(keys, "key_body", _broken)
        assert again(owner, "keys", ISSUE)[0] == 500
    assert (named(cast.acme), KeptAnswer.objects.count()) == (0, 0)
    assert again(owner, "keys", ISSUE)[::2] == (201, False)


def _broken(*_: Any) -> None:
    raise RuntimeError("broken")


def test_whoever_may_no_more_is_refused_though_the_answer_is_there(cast: Cast) -> None:
    program = with_key(cast.acme_key)
    assert again(program, "keys", ISSUE)[0] == 201
    key_id = ApiKey.objects.get(tenant=cast.acme, name="acme program").id
    revoke_key(tenant=cast.acme, key_id=key_id, actor="system")
    assert again(program, "keys", ISSUE)[0] == 401


def test_after_a_day_the_key_is_a_new_one(owner: Api, cast: Cast) -> None:
    again(owner, "keys", ISSUE)
    KeptAnswer.objects.update(created_at=timezone.now() - KEPT_FOR + timedelta(minutes=1))
    forget_answers()
    assert again(owner, "keys", ISSUE)[2] is True
    KeptAnswer.objects.update(created_at=timezone.now() - KEPT_FOR)
    assert again(owner, "keys", ISSUE)[2] is False
    assert named(cast.acme) == 2
    KeptAnswer.objects.update(created_at=timezone.now() - KEPT_FOR)
    forget_answers()
    assert KeptAnswer.objects.count() == 0


@pytest.mark.parametrize("key", ["", "a b", "é", "x" * 256])
def test_a_key_that_is_none_is_told(owner: Api, cast: Cast, key: str) -> None:
    client = Client()
    client.force_login(cast.owner)
    response = client.post("/api/v1/keys", ISSUE, content_type="application/json", headers={"Idempotency-Key": key})
    assert (response.status_code, response.json()["error"]["param"]) == (400, "Idempotency-Key")
    assert named(cast.acme) == 0


def test_what_is_kept_gives_nothing_away(owner: Api, cast: Cast, operator: Api) -> None:
    """A key's text, recovery codes, a link to a new password: in no table, though they are answered again."""
    shown = [again(owner, "keys", ISSUE)[1]["key"]]
    shown += [again(operator, f"operator/people/{cast.owner.id}/reset-link")[1]["link"].partition("#")[2]]
    again(owner, "account/totp", {"password": "correct horse battery"})
    assert [again(operator, f"operator/people/{cast.owner.id}/reset-link")[1]["link"].partition("#")[2]] == shown[1:]
    dump = every_table()
    assert KeptAnswer.objects.count() == 3
    for secret in (*shown, "correct horse battery"):
        assert secret not in dump


def test_an_answer_sealed_with_a_pepper_that_is_gone_is_not_done_again(owner: Api, cast: Cast, settings: Any) -> None:
    old = settings.KEY_PEPPERS
    again(owner, "keys", ISSUE)
    settings.KEY_PEPPERS = {max(old) + 1: b"new pepper"}
    status, body, _ = again(owner, "keys", ISSUE)
    assert (status, body["error"]["code"]) == (409, "idempotency_key_spent")
    assert named(cast.acme) == 1


def test_signing_in_takes_no_key(cast: Cast) -> None:
    body = {"email": "owner@acme.example", "password": "correct horse battery"}
    first, second = Api(), Api()
    assert [again(api, "session", body)[::2] for api in (first, second)] == [(200, False)] * 2
    assert KeptAnswer.objects.count() == 0
    assert first.client.cookies["sessionid"].value != second.client.cookies["sessionid"].value


def test_the_parts_of_a_place_do_not_run_into_each_other() -> None:
    places = [
        Place("t", "ab", "c", "d"),
        Place("t", "a", "bc", "d"),
        Place(None, "t", "ab", "c"),
        Place("", "t", "ab", "c"),
    ]
    assert len({place.name for place in places}) == 3  # no tenant, in either spelling


# --- at the same time, on a real database -------------------------------------------------------------------------


def at_once(*calls: Callable[[], Any]) -> list[Any]:
    def closing(call: Callable[[], Any]) -> Any:
        try:
            return call()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(calls)) as pool:
        jobs = [pool.submit(copy_context().run, closing, call) for call in calls]
        return [job.result() for job in jobs]


@pytest.fixture
def sole(transactional_db: None) -> tuple[Tenant, User]:
    tenant = Tenant.objects.create(slug="sole", name="Sole")
    user = User.objects.create(email="a@sole.example")
    Membership.objects.create(tenant=tenant, user=user, role=Role.OWNER)
    return tenant, user


def test_two_at_once_have_one_effect(sole: tuple[Tenant, User], monkeypatch: pytest.MonkeyPatch) -> None:
    """The first is held inside its deed until the second has been answered."""
    tenant, user = sole
    first, second = signed_in(user), signed_in(user)
    inside, go_on = threading.Event(), threading.Event()
    issue = keys.issue

    def slow(*args: Any, **named: Any) -> Any:
        made = issue(*args, **named)
        inside.set()
        assert go_on.wait(20)
        return made

    monkeypatch.setattr(keys, "issue", slow)

    def late() -> tuple[int, Any, bool]:
        assert inside.wait(20)
        try:
            return again(second, "keys", ISSUE)
        finally:
            go_on.set()

    (status, body, replayed), (late_status, late_body, _) = at_once(lambda: again(first, "keys", ISSUE), late)
    assert (status, replayed) == (201, False)
    assert (late_status, late_body["error"]["code"]) == (409, "idempotency_key_in_flight")
    monkeypatch.undo()
    assert again(second, "keys", ISSUE) == (201, body, True)
    assert named(tenant) == 1


def test_many_at_once_have_one_effect(sole: tuple[Tenant, User]) -> None:
    tenant, user = sole
    callers = [signed_in(user) for _ in range(4)]
    answers = at_once(*[lambda api=api: again(api, "keys", ISSUE) for api in callers])
    made = [body["key"] for status, body, _ in answers if status == 201]
    assert {status for status, _, _ in answers} <= {201, 409}
    assert (len(set(made)), named(tenant)) == (1, 1)
