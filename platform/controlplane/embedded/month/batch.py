"""Two batches: one for the platform's worker to answer, and one whose file is no good, which says so."""

import io
import json
from typing import Final

from controlplane.batches.asked import Asked
from controlplane.batches.files import KEPT, keep_upload
from controlplane.batches.starting import start_batch
from controlplane.embedded.month.people import House
from tenants.auth import principal_of_key
from tenants.scope import tenant_scope
from tenants.sql import run_sync

_ENDPOINT: Final = "/v1/chat/completions"
_THINGS: Final = ("lamp", "kettle", "bicycle bell", "raincoat", "notebook", "garden chair")


def start_batches(house: House, key: str, model: str, *, context_len: int) -> None:
    good = [_line(f"item-{number}", model, thing) for number, thing in enumerate(_THINGS, 1)]
    torn = [*good[:2], '{"custom_id": "item-3", "method": "POST", "url": "/v1/chat/com']
    _start(house, key, "autumn-catalogue.jsonl", good, context_len)
    _start(house, key, "autumn-catalogue-torn.jsonl", torn, context_len)


def _start(house: House, key: str, name: str, lines: list[str], context_len: int) -> None:
    tenant = house.tenant.id
    principal = run_sync(principal_of_key(house.keys[key].id), tenant=tenant)
    assert principal is not None, key
    raw = "\n".join(lines).encode()
    with tenant_scope(tenant):
        file = keep_upload(principal, name, io.BytesIO(raw), len(raw), KEPT)
        start_batch(principal, Asked(file.id, _ENDPOINT, {"campaign": "autumn"}, KEPT), context_len)


def _line(custom_id: str, model: str, thing: str) -> str:
    messages = [{"role": "user", "content": f"Write one line that sells a {thing}."}]
    body = {"model": model, "messages": messages, "max_tokens": 24}
    return json.dumps({"custom_id": custom_id, "method": "POST", "url": _ENDPOINT, "body": body})
