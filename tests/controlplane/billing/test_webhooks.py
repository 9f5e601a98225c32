"""Webhooks: signed as the standard says, kept inside what may be called, tried again, and given up in the end."""

import json
from collections.abc import Iterator
from datetime import timedelta
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest
from django.db import connection
from django.test import override_settings
from django.utils import timezone
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from controlplane.addresses import read_networks
from controlplane.billing import delivery as sending
from controlplane.billing.alerts import raise_alert
from controlplane.billing.delivery import WAITS, send_due
from controlplane.billing.models import Alert, AlertKind, WebhookAttempt, WebhookDelivery, WebhookEndpoint
from controlplane.fetcher import Fetcher
from tenants.models import AuditRow
from tenants.scope import ALL_TENANTS, tenant_scope
from tests.controlplane.conftest import Api, Cast
from tests.controlplane.money import everything, side_by_side
from tests.controlplane.web import Web

PUBLIC = "https://hooks.example/veneer"


class Hook:
    """A receiver. answers: the status of each call in turn, the last for ever."""

    def __init__(self, web: Web) -> None:
        self.answers = [200]
        self.got: list[tuple[dict[str, str], str]] = []
        self.url = web.url("/hook")
        web.pages["/hook"] = self._answer

    def _answer(self, request: BaseHTTPRequestHandler) -> None:
        body = request.rfile.read(int(request.headers["Content-Length"])).decode()
        self.got.append(({name.lower(): value for name, value in request.headers.items()}, body))
        status = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        request.send_response(status)
        if status == 302:
            request.send_header("Location", "/elsewhere")
        request.send_header("Content-Length", "4")
        request.end_headers()
        request.wfile.write(b"seen")


@pytest.fixture
def web() -> Iterator[Web]:
    with Web() as found:
        yield found


@pytest.fixture
def hook(web: Web) -> Iterator[Hook]:
    with override_settings(FETCH_ALLOWED_NETWORKS="127.0.0.0/8"):
        yield Hook(web)


LOCAL = Fetcher(read_networks("127.0.0.0/8"), 5, lambda host, port: ["127.0.0.1"])


def register(api: Api, hook: Hook, **more: Any) -> dict[str, Any]:
    status, body = api.post("webhooks", {"url": hook.url, **more})
    assert status == 201, body
    return body


def alert(cast: Cast, occasion: str = "1", kind: AlertKind = AlertKind.BUDGET) -> bool:
    return raise_alert(
        tenant_id=cast.acme.id, kind=kind, subject="s", occasion=occasion, data={"name": "Acmé", "percent": 80}
    )


def later() -> None:
    WebhookDelivery._base_manager.filter(state="pending").update(next_at=timezone.now())


def deliveries(api: Api, endpoint: dict[str, Any]) -> list[dict[str, Any]]:
    return api.get(f"webhooks/{endpoint['id']}/deliveries")[1]["data"]


# --- what is sent --------------------------------------------------------------------------------------------------


def test_an_alert_arrives_signed(cast: Cast, owner: Api, hook: Hook) -> None:
    endpoint = register(owner, hook)
    assert alert(cast)
    assert send_due(LOCAL) == 1
    [(headers, body)] = hook.got
    told = Webhook(endpoint["secret"]).verify(body, headers)
    assert (told["type"], told["data"]) == ("budget.threshold", {"name": "Acmé", "percent": 80})
    assert headers["webhook-id"] == everything(Alert).get().id
    with pytest.raises(WebhookVerificationError):
        Webhook(endpoint["secret"]).verify(body.replace("80", "10"), headers)
    [found] = deliveries(owner, endpoint)
    assert (found["state"], found["next_at"]) == ("delivered", None)
    [attempt] = found["attempts"]
    assert (attempt["status"], attempt["error"], attempt["excerpt"]) == (200, None, "seen")
    assert send_due(LOCAL) == 0


def test_the_same_occasion_is_sent_once(cast: Cast, owner: Api, hook: Hook) -> None:
    register(owner, hook)
    assert [alert(cast), alert(cast), alert(cast, "2")] == [True, False, True]
    assert send_due(LOCAL) == 2


@pytest.mark.django_db(transaction=True)
def test_workers_side_by_side_raise_once_and_send_once(cast: Cast, owner: Api, hook: Hook) -> None:
    register(owner, hook)
    assert side_by_side([lambda: alert(cast)] * 6) == {"True": 1, "False": 5}
    side_by_side([lambda: send_due(LOCAL)] * 4)
    assert len(hook.got) == 1


def test_only_what_is_wanted_and_only_ones_own(cast: Cast, owner: Api, stranger: Api, hook: Hook) -> None:
    register(owner, hook, kinds=["key.expiring"])
    other = register(stranger, hook)
    alert(cast)
    assert send_due(LOCAL) == 0
    alert(cast, kind=AlertKind.KEY_EXPIRING)
    assert send_due(LOCAL) == 1
    assert deliveries(stranger, other) == []


def test_after_a_rotation_both_secrets_sign_for_a_day(cast: Cast, owner: Api, hook: Hook) -> None:
    endpoint = register(owner, hook)
    status, rotated = owner.post(f"webhooks/{endpoint['id']}/rotate")
    assert (status, rotated["secret"] != endpoint["secret"]) == (200, True)
    alert(cast)
    send_due(LOCAL)
    headers, body = hook.got[0]
    for secret in (endpoint["secret"], rotated["secret"]):
        Webhook(secret).verify(body, headers)
    WebhookEndpoint._base_manager.update(old_until=timezone.now())
    alert(cast, "2")
    send_due(LOCAL)
    headers, body = hook.got[1]
    Webhook(rotated["secret"]).verify(body, headers)
    with pytest.raises(WebhookVerificationError):
        Webhook(endpoint["secret"]).verify(body, headers)


# --- what fails ----------------------------------------------------------------------------------------------------


def test_what_fails_is_tried_again_later_and_given_up_in_the_end(cast: Cast, owner: Api, hook: Hook) -> None:
    hook.answers = [500]
    endpoint = register(owner, hook)
    alert(cast)
    for n, wait in enumerate(WAITS, 1):
        before = timezone.now()
        assert send_due(LOCAL) == 1
        due = WebhookDelivery._base_manager.get()
        assert (due.state, due.tries) == ("pending", n)
        assert wait <= due.next_at - before <= wait * 1.2 + timedelta(seconds=30)
        assert send_due(LOCAL) == 0  # not before its time
        later()
    assert send_due(LOCAL) == 1
    [found] = deliveries(owner, endpoint)
    assert (found["state"], len(found["attempts"])) == ("failed", len(WAITS) + 1)
    assert len({headers["webhook-id"] for headers, _ in hook.got}) == 1
    hook.answers = [204]
    assert owner.post(f"deliveries/{found['id']}/resend")[1]["state"] == "pending"
    assert send_due(LOCAL) == 1
    assert deliveries(owner, endpoint)[0]["state"] == "delivered"


def test_an_endpoint_that_only_fails_is_switched_off_and_on_again(cast: Cast, owner: Api, hook: Hook) -> None:
    hook.answers = [500]
    endpoint = register(owner, hook)
    alert(cast)
    for _ in range(sending.DISABLED_AT_LEAST - 1):
        later()
        send_due(LOCAL)
        WebhookDelivery._base_manager.update(state="pending", tries=0)
    WebhookEndpoint._base_manager.update(failing_since=timezone.now() - sending.DISABLED_AFTER)
    later()
    assert send_due(LOCAL) == 1
    [row] = owner.get("webhooks")[1]["data"]
    assert (row["disabled_reason"], row["failures"]) == ("10 failures in a row", 10)
    told = everything(Alert).get(kind="webhook.disabled")
    assert (told.tenant_id, told.data["webhook_id"]) == (cast.acme.id, endpoint["id"])
    later()
    assert send_due(LOCAL) == 0
    assert owner.post(f"webhooks/{endpoint['id']}/test")[0] == 409
    hook.answers = [200]
    assert owner.patch(f"webhooks/{endpoint['id']}", {"enabled": True})[1]["failures"] == 0
    assert send_due(LOCAL) == 1


def test_gone_switches_off_at_once_and_success_forgets_failures(cast: Cast, owner: Api, hook: Hook) -> None:
    hook.answers = [500, 200, 410]
    register(owner, hook)
    alert(cast)
    send_due(LOCAL)
    assert everything(WebhookEndpoint).get().failures == 1
    later()
    send_due(LOCAL)
    assert everything(WebhookEndpoint).get().failing_since is None
    alert(cast, "2")
    send_due(LOCAL)
    assert everything(WebhookEndpoint).get().disabled_reason == "it answered 410 Gone"


def test_a_worker_that_dies_while_sending_is_followed_by_another(cast: Cast, owner: Api, hook: Hook) -> None:
    register(owner, hook)
    alert(cast)
    with tenant_scope(ALL_TENANTS):
        next(sending._claimed(1))  # claimed, and never finished
    assert send_due(LOCAL) == 0
    later()
    assert send_due(LOCAL) == 1


# --- where it may lead ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url",
    [
        "http://hooks.example/", "https://127.0.0.1/", "https://[::1]/", "https://[::ffff:7f00:1]/", "https://2130706433/",
        "https://0x7f.1/", "https://127.1/", "https://10.0.0.8/", "https://169.254.169.254/latest", "ftp://hooks.example/",
        "https://user:pass@hooks.example/", "javascript:alert(1)", "https://", "https://a b/", "https://192.168.0.1/",
        "https://[fd00::1]/", "https://100.64.0.1/", "https://0.0.0.0/",
    ],
)  # fmt: skip
def test_addresses_that_are_not_public_are_refused(owner: Api, url: str) -> None:
    status, body = owner.post("webhooks", {"url": url})
    assert (status, body["error"]["param"]) == (400, "url")
    endpoint = owner.post("webhooks", {"url": PUBLIC})[1]
    assert owner.patch(f"webhooks/{endpoint['id']}", {"url": url})[0] == 400


@pytest.mark.parametrize("leads_to", ["127.0.0.1", "10.1.2.3", "169.254.169.254", "::1", "::ffff:127.0.0.1"])
def test_a_name_that_leads_inwards_is_not_called(cast: Cast, owner: Api, web: Web, leads_to: str) -> None:
    hook = Hook(web)
    endpoint = owner.post("webhooks", {"url": PUBLIC})[1]
    alert(cast)
    assert send_due(Fetcher((), 5, lambda host, port: [leads_to])) == 1
    assert hook.got == []
    [found] = deliveries(owner, endpoint)
    assert (found["attempts"][0]["status"], found["attempts"][0]["error"]) == (
        None, "its host is not a public address",
    )  # fmt: skip


def test_a_redirect_is_not_followed(cast: Cast, owner: Api, web: Web, hook: Hook) -> None:
    hook.answers = [302]
    endpoint = register(owner, hook)
    alert(cast)
    send_due(LOCAL)
    [found] = deliveries(owner, endpoint)
    assert found["state"] == "pending"
    assert "/elsewhere" not in [path for _, path, _ in web.asked]


# --- over HTTP -----------------------------------------------------------------------------------------------------


def test_the_secret_is_shown_once_and_kept_sealed(cast: Cast, owner: Api) -> None:
    endpoint = owner.post("webhooks", {"url": PUBLIC})[1]
    secret = endpoint["secret"]
    assert secret.startswith("whsec_")
    assert "secret" not in owner.get("webhooks")[1]["data"][0]
    with connection.cursor() as cursor:
        cursor.execute("SELECT to_jsonb(e)::text FROM billing_webhookendpoint e")
        assert secret.removeprefix("whsec_") not in cursor.fetchone()[0]
    rows = json.dumps(list(AuditRow.objects.values_list("action", "details", flat=False)))
    assert "webhook.create" in rows
    assert secret.removeprefix("whsec_") not in rows


def test_a_test_message_goes_to_that_endpoint_alone(cast: Cast, owner: Api, hook: Hook) -> None:
    first, second = register(owner, hook), register(owner, hook)
    assert owner.post(f"webhooks/{first['id']}/test")[0] == 202
    assert send_due(LOCAL) == 1
    assert [len(deliveries(owner, each)) for each in (first, second)] == [1, 0]


def test_strangers_find_nothing(cast: Cast, owner: Api, stranger: Api, hook: Hook) -> None:
    endpoint = register(owner, hook)
    alert(cast)
    delivery = WebhookDelivery._base_manager.get()
    path = f"webhooks/{endpoint['id']}"
    assert stranger.get("webhooks")[1]["data"] == stranger.get("alerts")[1]["data"] == []
    calls = [
        stranger.patch(path, {"enabled": False}), stranger.delete(path), stranger.post(f"{path}/rotate"),
        stranger.post(f"{path}/test"), stranger.get(f"{path}/deliveries"),
        stranger.post(f"deliveries/{delivery.id}/resend"),
    ]  # fmt: skip
    assert {status for status, _ in calls} == {404}
    assert owner.get("alerts")[1]["data"][0]["data"] == {"name": "Acmé", "percent": 80}


def test_bad_input_is_named(owner: Api) -> None:
    assert owner.post("webhooks", {"url": PUBLIC, "kinds": ["nothing"]})[0] == 400
    assert owner.post("webhooks", {})[1]["error"]["param"] == "url"
    for _ in range(10):
        assert owner.post("webhooks", {"url": PUBLIC})[0] == 201
    assert owner.post("webhooks", {"url": PUBLIC})[1]["error"]["code"] == "too_many_webhooks"


def test_deleting_takes_its_deliveries_along(cast: Cast, owner: Api, hook: Hook) -> None:
    endpoint = register(owner, hook)
    alert(cast)
    send_due(LOCAL)
    assert owner.delete(f"webhooks/{endpoint['id']}")[0] == 204
    assert everything(WebhookAttempt).count() == 0
