"""`kill -9` at each point of the work at which a crash could lose money, or find some: in real processes, restarted by
their supervisor. Whatever died, in the end the books say what the engine's journal says, once."""

import hashlib
import os
import time
from collections.abc import Callable
from contextlib import suppress
from http.client import HTTPException
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any

import openai
import psycopg
import pytest
from openai import OpenAI

from controlplane.embedded.client import ApiFailure, Client
from controlplane.embedded.demo import books, people, uploads
from controlplane.embedded.upload import start_upload, wait_for_verdict
from controlplane.inference.answers import request_id_of
from tenants.roles import OPERATOR
from tests.controlplane.billing.fake_stripe import event, signature
from tests.e2e.deaths import PATIENCE, Death, Point

if TYPE_CHECKING:
    from tests.e2e.conftest import World

pytestmark = [pytest.mark.stack, pytest.mark.timeout(600)]
# The life of one request, in order.
LIFE = {
    "it was admitted": Point("controlplane.inference.services:_hold_all"),
    "its hold is committed": Point("controlplane.inference.driver:drive"),
    "the engine has it": Point("controlplane.inference.driver:parted"),
    "its first token is on the way": Point("controlplane.inference.driver:parted", call=2),
    "it is in mid-stream": Point("controlplane.inference.driver:parted", call=6),
    "its usage is in the journal": Point("engine.metering.journal:Journal._write_endings", "after"),
    "it is about to be settled": Point("controlplane.inference.driver:_settle_surely"),
    "it is settled": Point("controlplane.inference.run:Run.finish"),
    "the worker has it from the journal, which has not heard so": Point(
        "controlplane.inference.engine_sync:EngineCalls.ack_journal"
    ),
}
ENDINGS = tuple(LIFE)[4:8]
# Each process at all points would take ten minutes; VENEER_CRASH_POINTS=all does that.
VICTIMS = {
    "door": tuple(LIFE)[:8],
    "worker": tuple(LIFE)[8:],
    "engine": ENDINGS,
    "postgres": ENDINGS,
    "valkey": ENDINGS,
}
if os.environ.get("VENEER_CRASH_POINTS") == "all":
    VICTIMS = dict.fromkeys(VICTIMS, tuple(LIFE))


def booked(world: "World") -> dict[str, int]:
    """Generated tokens by request."""
    with as_operator(world) as conn:
        return dict(conn.execute("SELECT request_id, completion_tokens FROM billing_usageevent").fetchall())


def as_operator(world: "World") -> psycopg.Connection[Any]:
    return psycopg.connect(world.stack.facts()["DATABASE_URL"], options=f"-c role={OPERATOR}")


def ask(world: "World", seen: dict[str, int]) -> bool:
    """Whether it was answered to its end. seen: gets how many pieces of text came of it, however it ended."""
    client = OpenAI(base_url=f"{world.stack.door_url}/v1", api_key=world.keys["acme"], max_retries=0, timeout=120)
    with suppress(openai.APIError, openai.APIConnectionError, openai.InternalServerError):
        stream = client.chat.completions.create(
            model=world.base_model, messages=[{"role": "user", "content": "Tell me a long story about the sea."}],
            max_tokens=12, temperature=0, stream=True,
        )  # fmt: skip
        for chunk in stream:
            pieces = sum(1 for choice in chunk.choices if choice.delta.content)
            seen[request_id_of(chunk.id)] = seen.get(request_id_of(chunk.id), 0) + pieces
        return True
    return False


@pytest.mark.parametrize("victim", VICTIMS)
def test_a_request_is_billed_what_was_generated_once(world: "World", victim: str) -> None:
    before, seen = booked(world), dict[str, int]()
    for name in VICTIMS[victim]:
        death = Death(world.stack, victim, LIFE[name])
        deadline = time.monotonic() + PATIENCE
        while death.is_due:
            assert time.monotonic() < deadline, f"nothing came to the point where {name}"
            ask(world, seen)
        death.wait()
    deadline = time.monotonic() + PATIENCE
    while not ask(world, seen):  # whoever died last answers again
        assert time.monotonic() < deadline, f"no answer since {victim} died"
    books.wait_until_settled(world.stack)
    assert books.check_books(world.stack).rstrip().endswith("books: balanced")
    after = booked(world)
    assert books.check_journal(world.stack) == len(after)
    assert before.items() <= after.items()
    assert any(seen.values())
    for request_id, pieces in seen.items():
        assert after.get(request_id, 0) >= pieces, request_id


# --- the console --------------------------------------------------------------------------------------------------


def again(call: Callable[[], Any]) -> Any:
    """As a client does that got no answer: until there is one."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return call()
        except (OSError, HTTPException, ApiFailure) as lost:
            if time.monotonic() > deadline or (isinstance(lost, ApiFailure) and lost.status != 503):
                raise
            time.sleep(0.2)


def dies_during(world: "World", child: str, point: Point, call: Callable[[], Any]) -> Any:
    """What the call came to, for a client that sends it again until it is answered."""
    death = Death(world.stack, child, point)
    with pytest.raises((OSError, HTTPException)):
        call()
    death.wait()
    return again(call)


def session_of(world: "World", slug: str) -> Client:
    return again(lambda: world.members[slug].session(world.stack))


@pytest.mark.parametrize(
    "point",
    [
        Point("controlplane.billing.statements:issue_invoice"),
        Point("controlplane.billing.operator_api:close_period", "after"),
    ],
    ids=["half way", "before the answer"],
)
def test_a_period_is_closed_once(world: "World", point: Point) -> None:
    ask(world, {})
    books.wait_until_settled(world.stack)
    operator = again(lambda: people.operator_session(world.stack))
    tenant = world.members["acme"].id
    time.sleep(1.1)  # whole seconds are closed up to: what was just used is before
    until = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    path = f"/api/v1/operator/tenants/{tenant}/close"
    statement = dies_during(world, "console", point, lambda: operator.post(path, {"until": until}))
    with as_operator(world) as conn:
        found = "SELECT id FROM billing_statement WHERE tenant_id = %s AND period_end = %s"
        assert conn.execute(found, [tenant, until]).fetchall() == [(statement["id"],)]
    assert books.check_books(world.stack).rstrip().endswith("books: balanced")


@pytest.mark.parametrize(
    "point",
    [
        Point("controlplane.billing.payment_booking:_book"),
        Point("controlplane.billing.payment_api:take_notice", "after"),
    ],
    ids=["before it is credit", "before the answer"],
)
def test_a_payment_is_credit_once(world: "World", point: Point) -> None:
    session = session_of(world, "acme")
    payment = session.post("/api/v1/payments", {"kind": "credit", "amount": "7.00"})
    body = event("checkout.session.completed", world.stripe.session(payment["id"]))
    stripe = Client(world.stack.console_url)
    headers = {"Content-Type": "application/json", "Stripe-Signature": signature(body)}
    dies_during(world, "console", point, lambda: stripe._send("POST", "/api/v1/stripe/notices", body, headers))
    with as_operator(world) as conn:
        rows = conn.execute("SELECT amount FROM billing_grant WHERE reference = %s", [payment["id"]]).fetchall()
    assert rows == [(7,)]
    assert books.check_books(world.stack).rstrip().endswith("books: balanced")


def test_a_rotated_keys_text_is_not_lost(world: "World") -> None:
    """The new text is shown once: an answer that nobody got is given again, to whoever sends the same key for it."""
    session = session_of(world, "acme")
    key = people.issue_key(session, "to be rotated")
    point = Point("controlplane.api_view:answer_once", "after")
    headers = {"Content-Type": "application/json", "Idempotency-Key": hashlib.sha256(os.urandom(8)).hexdigest()}
    path = f"/api/v1/keys/{key['id']}/rotate"
    new = dies_during(world, "console", point, lambda: session._send("POST", path, b"{}", headers))
    for text in (key["key"], new["key"]):  # the old one has its grace
        client = OpenAI(base_url=f"{world.stack.door_url}/v1", api_key=text, max_retries=2)
        assert client.models.list().data


# --- an adapter's way in ------------------------------------------------------------------------------------------


def test_an_adapters_part_its_check_and_its_name(world: "World") -> None:
    """The console dies as it has a part, the worker as the files are published, the console as the name moves."""
    session = session_of(world, "acme")
    files = {path.name: path.read_bytes() for path in (uploads.EXAMPLES / "json").glob("adapter_*")}
    version = start_upload(session, name="json", base_model=world.base_model, files=files)
    path = f"/api/v1/versions/{version['id']}"
    config, weights = sorted(files)
    session.put_bytes(f"{path}/files/{config}?offset=0", files[config])
    send = lambda: session.put_bytes(f"{path}/files/{weights}?offset=0", files[weights])  # noqa: E731
    dies_during(world, "console", Point("controlplane.adapters.uploads:record_part"), send)
    check = Death(world.stack, "worker", Point("controlplane.adapters.checks:publish_files", "after"))
    session.post(f"{path}/finish")
    check.wait()
    assert wait_for_verdict(session, version["id"], seconds=PATIENCE)["state"] == "ready"
    [adapter] = [each for each in session.get("/api/v1/adapters")["data"] if each["name"] == "json"]
    alias = f"/api/v1/adapters/{adapter['id']}/alias"
    moved = Point("controlplane.adapters.aliases:_replace", "after")
    dies_during(world, "console", moved, lambda: session.put(alias, {"splits": [{"version": 1, "weight": 1}]}))
    with as_operator(world) as conn:
        splits = "SELECT version_id, weight FROM adapters_aliassplit WHERE adapter_id = %s"
        assert conn.execute(splits, [adapter["id"]]).fetchall() == [(version["id"], 1)]


# --- what is sent out ---------------------------------------------------------------------------------------------


class Hook:
    """A receiver. got: the ids of the messages that came, in order."""

    def __init__(self, world: "World", name: str) -> None:
        self.got: list[str] = []
        self.url = f"http://127.0.0.1:{world.web.port}/{name}"
        world.web.pages[f"/{name}"] = self._take

    def _take(self, request: BaseHTTPRequestHandler) -> None:
        request.rfile.read(int(request.headers["Content-Length"]))
        self.got.append(str(request.headers["webhook-id"]))
        request.send_response(200)
        request.send_header("Content-Length", "0")
        request.end_headers()


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_message_on_its_way_arrives(world: "World", when: str) -> None:
    """After: it was sent, and that is not written down. Then it comes twice, under the same id."""
    session, hook = session_of(world, "globex"), Hook(world, f"hook-{when}")
    endpoint = session.post("/api/v1/webhooks", {"url": hook.url})
    death = Death(world.stack, "worker", Point("controlplane.billing.delivery:send", when))
    session.post(f"/api/v1/webhooks/{endpoint['id']}/test")
    death.wait()
    path, deadline = f"/api/v1/webhooks/{endpoint['id']}/deliveries", time.monotonic() + PATIENCE
    while (sent := session.get(path)["data"])[0]["state"] != "delivered":
        assert time.monotonic() < deadline, sent
        time.sleep(0.2)
    assert (len(sent), len(set(hook.got)), len(hook.got)) == (1, 1, 1 if when == "before" else 2)
