"""What is another's looks exactly like what is not there: every route with an id in its address, with ids that exist.

The routes are those of `test_roles`; one whose kind of id is not made here fails the test.
"""

import re
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import pytest
from django.utils import timezone

from controlplane.adapters.evaluation_models import Evaluation, PromptSet
from controlplane.adapters.models import Adapter, AdapterGrant, AdapterVersion, AliasSplit, VersionFile
from controlplane.adapters.states import State
from controlplane.batches.models import Batch
from controlplane.billing.models import Alert, Invoice, Price, Statement, UsageEvent, WebhookDelivery, WebhookEndpoint
from tenants.credentials import Passkey, Session
from tenants.identity import IdentityProvider, LinkedIdentity, SignInDomain
from tenants.ids import new_id
from tenants.models import ApiKey, Invitation, Membership, Tenant
from tests.controlplane.conftest import Api, Cast, signed_in, with_key
from tests.controlplane.console.test_roles import MAY, OPERATOR

ROUTES: Final = sorted(route for route, who in MAY.items() if "<" in route and who != OPERATOR)
# Right bodies: a route must not hide behind a 400 that it would give to anybody.
BODIES: Final[dict[str, Any]] = {
    "PATCH keys/<key_id>": {"name": "mine now"},
    "POST keys/<key_id>/rotate": {"grace_seconds": 0},
    "PUT keys/<key_id>/limits": {"requests_per_minute": 1},
    "PUT members/<member_id>/limits": {"requests_per_minute": 1},
    "PUT adapters/<adapter_id>/limits": {"requests_per_minute": 1},
    "PUT adapters/<adapter_id>/alias": {"splits": [{"version": 1, "weight": 1}]},
    "POST adapters/<adapter_id>/grants": {"tenant": "third"},
    "PUT adapters/<adapter_id>/grants/<grant_id>/markup": {"per_million": "1"},
    "PUT adapters/<adapter_id>/pin": {"pinned": True},
    "POST adapters/<adapter_id>/prompt-sets": {"name": "mine", "prompts": [{"prompt": "x"}]},
    "POST adapters/<adapter_id>/evaluations": {"prompt_set": "x", "candidate": 1, "baseline": None},
    "PUT versions/<version_id>/files/<name>": b"x",
    "PATCH webhooks/<endpoint_id>": {"url": "https://example.com/hook"},
    "PATCH members/<member_id>": {"role": "viewer"},
    "POST account/passkeys/<passkey_id>/remove": {"password": "correct horse battery"},
    "POST account/companies/<link_id>/remove": {"password": "correct horse battery"},
}
NAMED: Final = {"name": "x", "address": "x", "tax_id": ""}
# Of another tenant's adapter, which its owner has by another address.
OF_OTHERS: Final = {"DELETE adapters/shared/<adapter_id>"}
QUERIES: Final = {"PUT versions/<version_id>/files/<name>": "?offset=0"}


@pytest.fixture
def theirs(cast: Cast, settings: Any, tmp_path: Path) -> dict[str, str]:
    """Acme's rows by the name of the id in an address; what is missing of each kind is told by its prefix."""
    acme, owner, now = cast.acme, cast.owner, timezone.now()
    third = Tenant.objects.create(slug="third", name="Third")
    adapter = Adapter.objects.create(tenant=acme, name="pirate", base_model="base")
    version = AdapterVersion.objects.create(
        tenant=acme, adapter=adapter, number=1, size_bytes=1, state=State.READY, digest="0" * 64, rank=8,
        uri="file:///none", ready_at=now,
    )  # fmt: skip
    settings.OBJECTS_DIR = tmp_path
    folder = tmp_path / "adapters" / version.digest
    folder.mkdir(parents=True)
    (folder / "adapter_config.json").write_text("{}")
    VersionFile.objects.create(version=version, name="adapter_config.json", size=1, sha256="0" * 64)
    AliasSplit.objects.create(adapter=adapter, version=version, weight=1)
    statement = Statement.objects.create(
        tenant=acme, period_start=now - timedelta(days=1), period_end=now, total=0, credit_used=0, due=0, created_by="x"
    )
    invoice = Invoice.objects.create(
        tenant=acme, statement=statement, number=1, seller=NAMED, buyer=NAMED, time_zone="UTC", lines=[], carried_in=0,
        subtotal=0, tax_name="", tax_rate=0, tax=0, total=0, carried_out=0, due_on=now.date(),
    )  # fmt: skip
    endpoint = WebhookEndpoint.objects.create(tenant=acme, url="https://example.com", sealed_secret="x")
    alert = Alert.objects.create(tenant=acme, kind="webhook.test", subject="x", occasion="x", data={})
    provider = IdentityProvider.objects.create(
        tenant=acme, issuer="https://x", client_id="x", sealed_secret="x", endpoints={}, default_role="viewer"
    )
    key = ApiKey.objects.get(tenant=acme)
    price = Price.objects.create(base_model="base", input=1, cached_input=1, output=1, created_by="x")
    request = UsageEvent.objects.create(
        request_id=new_id("req"), tenant=acme, key=key, model="base", base_model="base", price=price, prompt_tokens=1,
        cached_tokens=0, completion_tokens=0, device_ns=0, amount=0, finish_reason="stop", started_at=now,
        finished_at=now,
    )  # fmt: skip
    batch = Batch.objects.create(
        tenant=acme, key=key, endpoint="/v1/completions", completion_window="24h", input_file_id="file_x",
        output_kept_seconds=3600, expires_at=now + timedelta(1),
    )  # fmt: skip
    prompts = PromptSet.objects.create(tenant=acme, adapter=adapter, name="smoke", prompts=[{"prompt": "x"}])
    evaluation = Evaluation.objects.create(
        tenant=acme, adapter=adapter, prompt_set=prompts, prompt_set_name="smoke", candidate=version, key=key,
        max_tokens=1, total=0,
    )  # fmt: skip
    found = {
        "prompt_set_id": prompts.id,
        "evaluation_id": evaluation.id,
        "key_id": key.id,
        "request_id": request.request_id,
        "batch_id": batch.id,
        "adapter_id": adapter.id,
        "version_id": version.id,
        "name": "adapter_config.json",
        "grant_id": AdapterGrant.objects.create(tenant=acme, adapter=adapter, grantee=third).id,
        "statement_id": statement.id,
        "invoice_id": invoice.id,
        "endpoint_id": endpoint.id,
        "delivery_id": WebhookDelivery.objects.create(tenant=acme, endpoint=endpoint, alert=alert, state="failed").id,
        "member_id": Membership.objects.get(tenant=acme, user=cast.people["viewer"]).id,
        "invitation_id": Invitation.objects.create(
            tenant=acme, email="new@acme.example", role="viewer", token_digest="0" * 64, expires_at=now + timedelta(1)
        ).id,
        "passkey_id": Passkey.objects.create(
            user=owner, name="x", rp_id="localhost", key_id="x", credential=b"x", sign_count=0
        ).id,
    }
    found["link_id"] = LinkedIdentity.objects.create(
        tenant=acme, provider=provider, issuer="https://x", subject="x", user=owner
    ).id
    found["domain_id"] = SignInDomain.objects.create(tenant=acme, name="acme.example", token="x", confirmed_at=now).id
    signed_in(owner)
    found["session_id"] = Session.objects.filter(user=owner).latest("created_at").id
    return {name: str(value) for name, value in found.items()}


def missing(name: str, existing: str) -> str:
    if name == "name":
        return existing
    return "987654" if existing.isdigit() else new_id(existing.partition("_")[0])


def ask(api: Api, route: str, ids: dict[str, str]) -> tuple[int, str]:
    """Status and body, with the ids taken out."""
    method, path = route.split()
    address = re.sub(r"<(\w+)>", lambda found: ids[found[1]], path) + QUERIES.get(route, "")
    response = api.raw(method, address, BODIES.get(route))
    content = b"".join(response.streaming_content) if response.streaming else response.content
    text = content.decode(errors="replace")
    for name in re.findall(r"<(\w+)>", path):
        text = text.replace(ids[name], "<id>")
    return response.status_code, text


@pytest.mark.parametrize("route", ROUTES)
def test_what_is_anothers_is_missing(cast: Cast, theirs: dict[str, str], route: str) -> None:
    names = re.findall(r"<(\w+)>", route)
    nowhere = {name: missing(name, theirs[name]) for name in names}
    before = everything_of(cast)
    for api in (signed_in(cast.stranger), with_key(cast.globex_key)):
        for ids in (theirs, nowhere):
            status, text = ask(api, route, ids)
            if status == 403 and api.headers:  # people only
                continue
            assert status == 404, text
            assert (status, text) == ask(api, route, nowhere)
    assert everything_of(cast) == before


def everything_of(cast: Cast) -> list[list[Any]]:
    models = (
        ApiKey,
        Batch,
        Adapter,
        AdapterVersion,
        AdapterGrant,
        WebhookEndpoint,
        WebhookDelivery,
        Membership,
        Invitation,
    )
    return [list(model.objects.filter(tenant=cast.acme).order_by("pk").values()) for model in models]


@pytest.mark.parametrize("route", sorted({*ROUTES} - OF_OTHERS))
def test_the_same_addresses_are_there_for_whose_they_are(cast: Cast, theirs: dict[str, str], route: str) -> None:
    """Or the test above would show nothing."""
    status, text = ask(signed_in(cast.owner), route, theirs)
    assert status != 404, text
