"""/v1/batches with the unmodified `openai` package, against a door and a fake engine: what comes back, and what it
costs."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

import httpx
import openai
import pytest
from django.utils import timezone

from controlplane.batches.models import Batch, File
from controlplane.billing.models import UsageEvent
from controlplane.quotas.models import Hold
from engine.protocol import EngineError, Generate
from tenants.key_services import issue_key
from tenants.models import ApiKey
from tenants.scope import ALL_TENANTS, tenant_scope
from tests.controlplane.batches.conftest import (
    CHAT,
    assert_balanced,
    chat,
    create,
    lines_of,
    quota_of,
    records,
    row_of,
    set_discount,
    upload,
    work_off,
)  # fmt: skip
from tests.controlplane.fake_engine import Script
from tests.controlplane.inference.conftest import BASE, Caller, Served, new_adapter, new_caller, usage_of

pytestmark = pytest.mark.usefixtures("new_journal")


def test_a_batch_is_answered(client: openai.OpenAI, caller: Caller, stack: Served) -> None:
    set_discount(caller, 50)
    batch = create(client, [chat(i) for i in range(1, 6)], metadata={"for": "tests"})
    assert (batch.object, batch.status, batch.endpoint) == ("batch", "validating", CHAT)
    assert (batch.completion_window, batch.metadata) == ("24h", {"for": "tests"})
    assert (batch.request_counts.total, batch.output_file_id, batch.errors) == (5, None, None)
    assert batch.expires_at - batch.created_at == 86400
    work_off()
    batch = client.batches.retrieve(batch.id)
    assert (batch.status, batch.error_file_id) == ("completed", None)
    assert (batch.request_counts.completed, batch.request_counts.failed) == (5, 0)
    assert batch.created_at <= batch.in_progress_at <= batch.finalizing_at <= batch.completed_at
    answers = records(client, batch.output_file_id)
    assert [answer["custom_id"] for answer in answers] == [f"line-{i}" for i in range(1, 6)]
    for answer in answers:
        assert (answer["error"], answer["response"]["status_code"]) == (None, 200)
        assert answer["response"]["body"]["choices"][0]["message"]["content"] == "Ahoy, matey!"
    assert client.files.retrieve(batch.output_file_id).purpose == "batch_output"
    assert [each.id for each in client.batches.list()] == [batch.id]


def test_lines_run_in_the_background_with_little_weight(client: openai.OpenAI, stack: Served) -> None:
    create(client, [chat(1)])
    work_off()
    [asked] = stack.engine.of(Generate)
    assert asked.background
    assert asked.tenant_weight == pytest.approx(0.1)
    client.chat.completions.create(model=BASE, messages=[{"role": "user", "content": "x"}])
    assert not stack.engine.of(Generate)[1].background


@pytest.mark.parametrize(
    "endpoint, body, key",
    [
        ("/v1/completions", {"prompt": ["a", "b", "c"], "max_tokens": 4, "n": 2}, "choices"),
        ("/v1/embeddings", {"input": ["a", "b"], "encoding_format": "float"}, "data"),
    ],
)
def test_other_endpoints(
    client: openai.OpenAI, caller: Caller, stack: Served, endpoint: str, body: dict[str, Any], key: str
) -> None:
    """Each prompt of a line is billed by itself, as it is at the door."""
    line = {"custom_id": "a", "method": "POST", "url": endpoint, "body": {"model": BASE} | body}
    batch = create(client, [line], endpoint)
    work_off()
    [answer] = records(client, client.batches.retrieve(batch.id).output_file_id)
    direct = httpx.post(f"{stack.url}{endpoint}", json=line["body"], headers=caller.headers).json()
    assert answer["response"]["body"][key] == direct[key]
    batched = [event for event in usage_of(caller) if event.is_batch]
    assert len(batched) == len(body.get("prompt") or body["input"])
    assert Decimal(client.batches.retrieve(batch.id).cost) == sum(event.amount for event in batched)
    assert_balanced(stack)


def test_lines_that_cannot_run_are_told_one_by_one(client: openai.OpenAI, caller: Caller, stack: Served) -> None:
    new_adapter(caller)
    new_adapter(new_caller(), "theirs")
    batch = create(
        client,
        [
            chat(1, model="pirate"),
            chat(2, model="theirs"),
            chat(3, temperature=9),
            chat(4, stream=True),
            chat(5, max_tokens=10**6),
            chat(6),
        ],
    )
    work_off()
    batch = client.batches.retrieve(batch.id)
    assert (batch.status, batch.request_counts.completed, batch.request_counts.failed) == ("completed", 2, 4)
    good = records(client, batch.output_file_id)
    assert [(each["custom_id"], each["response"]["body"]["model"]) for each in good] == [
        ("line-1", "pirate@1"), ("line-6", BASE),
    ]  # fmt: skip
    bad = records(client, batch.error_file_id)
    told = [(each["line"], each["response"]["status_code"], each["response"]["body"]["error"]["param"]) for each in bad]
    assert told == [(2, 404, "model"), (3, 400, "temperature"), (4, 400, "stream"), (5, 400, "messages")]
    kept = [(line.number, line.failure["status"], line.failure["param"]) for line in lines_of(batch.id) if line.failure]
    assert kept == told
    assert len(usage_of(caller)) == 2
    assert quota_of(caller).held == 0


def test_a_key_runs_only_what_it_may(client: openai.OpenAI, caller: Caller, stack: Served) -> None:
    new_adapter(caller)
    with tenant_scope(ALL_TENANTS):
        ApiKey.objects.filter(id=caller.key_id).update(allowed_models=["pirate"])
        stack.door().gate._known.clear()
    batch = create(client, [chat(1), chat(2, model="pirate")])
    work_off()
    batch = client.batches.retrieve(batch.id)
    [bad] = records(client, batch.error_file_id)
    assert (bad["custom_id"], bad["response"]["body"]["error"]["code"]) == ("line-1", "model_not_allowed")
    assert [each["custom_id"] for each in records(client, batch.output_file_id)] == ["line-2"]


FAULTS: dict[str, tuple[list[Any], list[tuple[str, int | None]]]] = {
    "no JSON": ([chat(1), b"nonsense", chat(2)], [("invalid_json_line", 2)]),
    "the same id": ([chat(1), b"", chat(1)], [("duplicate_custom_id", 3)]),
    "several": (
        [chat(1) | {"method": "GET"}, chat(2) | {"url": "/v1/files"}, chat(3) | {"body": []}],
        [("invalid_method", 1), ("invalid_url", 2), ("invalid_body", 3)],
    ),
    "nothing": ([b"  ", b""], [("empty_file", None)]),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_file_that_is_no_list_of_requests_fails_whole(
    client: openai.OpenAI, caller: Caller, stack: Served, name: str
) -> None:
    lines, faults = FAULTS[name]
    batch = create(client, lines)
    assert (batch.status, batch.failed_at is not None) == ("failed", True)
    assert [(error.code, error.line) for error in batch.errors.data] == faults
    assert [record["line"] for record in records(client, batch.error_file_id)] == [line for _, line in faults]
    work_off()
    assert client.batches.retrieve(batch.id) == batch
    assert stack.engine.of(Generate) == []
    with tenant_scope(ALL_TENANTS):
        assert not Hold.objects.exists()


def test_too_many_lines(client: openai.OpenAI, settings: Any) -> None:
    settings.MAX_BATCH_LINES = 2
    assert create(client, [chat(1), chat(2)]).status == "validating"
    [error] = create(client, [chat(1), chat(2), chat(3)]).errors.data
    assert error.code == "too_many_lines"


BODIES: dict[str, tuple[dict[str, Any], str]] = {
    "no file": ({"input_file_id": None}, "input_file_id"),
    "a number": ({"input_file_id": 5}, "input_file_id"),
    "no endpoint": ({"endpoint": None}, "endpoint"),
    "another endpoint": ({"endpoint": "/v1/responses"}, "endpoint"),
    "no window": ({"completion_window": None}, "completion_window"),
    "another window": ({"completion_window": "1h"}, "completion_window"),
    "metadata": ({"metadata": {"a": 1}}, "metadata.a"),
    "much metadata": ({"metadata": {str(i): "x" for i in range(17)}}, "metadata"),
    "long metadata": ({"metadata": {"a": "x" * 513}}, "metadata.a"),
    "NUL in metadata": ({"metadata": {"a": "\0"}}, "metadata.a"),
    "an anchor": ({"output_expires_after": {"anchor": "x", "seconds": 3600}}, "output_expires_after.anchor"),
    "soon": ({"output_expires_after": {"anchor": "created_at", "seconds": 1}}, "output_expires_after.seconds"),
}


@pytest.mark.parametrize("name", BODIES)
def test_a_body_that_is_wrong_names_its_field(http: httpx.Client, client: openai.OpenAI, name: str) -> None:
    change, param = BODIES[name]
    body = {"input_file_id": upload(client, [chat(1)]), "endpoint": CHAT, "completion_window": "24h"}
    response = http.post("/batches", json=body | change)
    assert (response.status_code, response.json()["error"]["param"]) == (400, param)
    assert http.get("/batches").json()["data"] == []


def test_cancelled_before_it_ran(client: openai.OpenAI, caller: Caller, stack: Served) -> None:
    batch = client.batches.cancel(create(client, [chat(1), chat(2)]).id)
    assert (batch.status, batch.cancelling_at is not None) == ("cancelling", True)
    assert client.batches.cancel(batch.id).status == "cancelling"
    work_off()
    batch = client.batches.retrieve(batch.id)
    assert (batch.status, batch.cancelled_at is not None, batch.output_file_id) == ("cancelled", True, None)
    told = records(client, batch.error_file_id)
    assert [(each["line"], each["error"]["code"]) for each in told] == [(1, "batch_cancelled"), (2, "batch_cancelled")]
    assert (stack.engine.of(Generate), quota_of(caller).held, usage_of(caller)) == ([], 0, [])
    with pytest.raises(openai.ConflictError) as caught:
        client.batches.cancel(batch.id)
    assert caught.value.code == "batch_ended"


def test_an_expired_batch_says_so(client: openai.OpenAI, caller: Caller) -> None:
    batch = create(client, [chat(1)])
    with tenant_scope(ALL_TENANTS):
        Batch.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    work_off()
    batch = client.batches.retrieve(batch.id)
    assert (batch.status, batch.expired_at is not None) == ("expired", True)
    assert [each["error"]["code"] for each in records(client, batch.error_file_id)] == ["batch_expired"]
    assert quota_of(caller).held == 0


def test_a_revoked_key_ends_its_batches(client: openai.OpenAI, caller: Caller, stack: Served) -> None:
    batch = create(client, [chat(1)])
    with tenant_scope(ALL_TENANTS):
        ApiKey.objects.filter(id=caller.key_id).update(revoked_at=timezone.now())
    work_off()
    row = row_of(batch.id)
    assert (row.status, row.errors[0]["code"]) == ("failed", "key_not_valid")
    assert (stack.engine.of(Generate), quota_of(caller).held) == ([], 0)


def test_a_file_that_vanished_ends_its_batch(client: openai.OpenAI, caller: Caller, objects: Any) -> None:
    batch = create(client, [chat(1)])
    for path in objects.rglob("file_*"):
        path.unlink()
    work_off()
    row = row_of(batch.id)
    assert (row.status, row.errors[0]["code"], row.error_file_id) == ("failed", "input_file_missing", None)
    assert quota_of(caller).held == 0


def test_what_passes_is_tried_again(client: openai.OpenAI, caller: Caller, stack: Served) -> None:
    """An engine that has no room refuses; the line waits and runs, and is billed once."""
    full = EngineError("", "engine_overloaded", "full", permanent=False, retry_after_s=0.1)
    stack.engine.scripts.extend([Script(pieces=(), error=full), Script(pieces=(), error=full)])
    batch = create(client, [chat(1)])
    work_off()
    assert client.batches.retrieve(batch.id).request_counts.completed == 1
    [line] = lines_of(batch.id)
    [event] = usage_of(caller)
    assert (line.attempt, event.request_id) == (3, f"{batch.id}-1-3")


def test_what_does_not_pass_is_told(client: openai.OpenAI, caller: Caller, stack: Served) -> None:
    stack.engine.scripts.append(Script(error=EngineError("", "non_finite_logits", "no", permanent=True)))
    batch = create(client, [chat(1)])
    work_off()
    [bad] = records(client, client.batches.retrieve(batch.id).error_file_id)
    assert (bad["response"]["status_code"], bad["response"]["body"]["error"]["code"]) == (503, "non_finite_logits")
    assert client.batches.retrieve(batch.id).status == "completed"
    assert Decimal(client.batches.retrieve(batch.id).cost) == sum(event.amount for event in usage_of(caller))


def test_a_tenant_has_only_so_many_lines_at_once(client: openai.OpenAI, stack: Served, settings: Any) -> None:
    settings.BATCH_LINES_PER_TENANT = 2
    most = 0
    answer = stack.engine._step

    def step(socket: Any) -> None:
        nonlocal most
        most = max(most, len(stack.engine.running))
        answer(socket)

    stack.engine._step = step  # type: ignore[method-assign]
    try:
        stack.engine.script = Script(delay=0.01)
        for _ in range(2):
            create(client, [chat(i) for i in range(6)])
        work_off()
    finally:
        del stack.engine._step
    assert most == 2


def test_anothers_batch_is_missing(stack: Served, client: openai.OpenAI, caller: Caller) -> None:
    """Another tenant's, and another key's of the same tenant."""
    batch = create(client, [chat(1)])
    with tenant_scope(ALL_TENANTS):
        _, second = issue_key(tenant=caller.tenant, name="second", scopes=("inference",), actor=None)
    for headers in (new_caller().headers, {"Authorization": f"Bearer {second}"}):
        with httpx.Client(base_url=f"{stack.url}/v1/batches", headers=headers) as api:
            told = []
            for name in (batch.id, "batch_0123456789012345678901"):
                answers = [api.get(f"/{name}"), api.post(f"/{name}/cancel")]
                told.append([(each.status_code, each.text.replace(name, "<id>")) for each in answers])
            assert told[0] == told[1]
            assert [status for status, _ in told[0]] == [404, 404]
        assert httpx.get(f"{stack.url}/v1/batches", headers=headers).json()["data"] == []
        assert httpx.get(f"{stack.url}/v1/batches?after={batch.id}", headers=headers).status_code == 400
    assert row_of(batch.id).status == "validating"
    assert client.batches.retrieve(batch.id).id == batch.id


def test_lists_are_paged(client: openai.OpenAI) -> None:
    ids = [create(client, [chat(i)]).id for i in range(5)]
    assert [batch.id for batch in client.batches.list(limit=2)] == ids[::-1]
    page = client.batches.list(limit=3)
    assert (page.has_more, [batch.id for batch in page.data]) == (True, ids[:1:-1])


def test_output_files_expire_when_they_were_told_to(client: openai.OpenAI) -> None:
    batch = create(client, [chat(1)], output_expires_after={"anchor": "created_at", "seconds": 7200})
    work_off()
    file = client.files.retrieve(client.batches.retrieve(batch.id).output_file_id)
    assert file.expires_at - file.created_at in (7199, 7200)


def test_answers_are_kept_once(client: openai.OpenAI) -> None:
    """In the file, no more in the database."""
    batch = create(client, [chat(1), chat(2, temperature=9)])
    work_off()
    assert [(line.state, line.answer) for line in lines_of(batch.id)] == [("completed", None), ("failed", None)]
    with tenant_scope(ALL_TENANTS):
        assert File.objects.filter(purpose="batch_output").count() == 2
        assert UsageEvent.objects.count() == 1
