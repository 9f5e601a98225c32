"""Adapters as people bring them: uploaded in parts, checked, tried by the engine, shared, released by canary."""

import hashlib
import io
import json
import time
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, Final

from controlplane.adapters.aliases import set_alias
from controlplane.adapters.evaluations import start_evaluation
from controlplane.adapters.grants import create_grant
from controlplane.adapters.models import Adapter, AdapterVersion
from controlplane.adapters.pins import set_pin
from controlplane.adapters.prompt_sets import create_prompt_set
from controlplane.adapters.states import State
from controlplane.adapters.uploads import DeclaredFile, finish_upload, start_upload, store_upload_part
from controlplane.billing.markups import set_markup
from controlplane.embedded.month.cast import Upload
from controlplane.embedded.month.clock import made_at
from controlplane.embedded.month.people import House
from controlplane.embedded.month.traffic import CANARY_PERCENT
from controlplane.embedded.month.workers import Workers
from controlplane.embedded.problems import StackProblem
from controlplane.env import ROOT
from tenants.scope import ALL_TENANTS, tenant_scope

_FILES: Final = ("adapter_config.json", "adapter_model.safetensors")
_VERDICT_SECONDS: Final = 180.0
MARKUP: Final = Decimal(4)
_PROMPTS: Final[list[dict[str, Any]]] = [
    {"messages": [{"role": "user", "content": "Where is my parcel? I ordered a week ago."}], "contains": "parcel"},
    {"messages": [{"role": "user", "content": "How do I send a lamp back?"}]},
    {"messages": [{"role": "user", "content": "The app shows error 14. What now?"}], "contains": "14"},
    {"messages": [{"role": "user", "content": "Thank you, that was all."}]},
]


def bring(house: House, upload: Upload, workers: Workers, *, base_model: str, at: datetime) -> None:
    """Raises StackProblem where the check does not come to the verdict that this adapter was made for."""
    user, files = house.people[upload.person], _files_of(upload)
    declared = [DeclaredFile(name, len(raw), hashlib.sha256(raw).hexdigest()) for name, raw in files.items()]
    with made_at(at):
        version = start_upload(
            tenant=house.tenant, actor=user.id, user=user, name=upload.adapter, base_model=base_model, files=declared
        )
        for name, raw in files.items():
            store_upload_part(
                tenant=house.tenant, version_id=version.id, name=name, offset=0, length=len(raw),
                read=io.BytesIO(raw).read,
            )  # fmt: skip
        finish_upload(tenant=house.tenant, actor=user.id, version_id=version.id)
        found = _verdict(version.id, workers)
    expected = State.REJECTED if upload.claims else State.READY
    if found.state != expected:
        raise StackProblem(
            f"{upload.adapter} of {house.company.slug} should become {expected}, and is {found.state}: {found.report}"
        )


def _files_of(upload: Upload) -> dict[str, bytes]:
    folder = ROOT / "examples" / "adapters" / upload.folder
    files = {name: (folder / name).read_bytes() for name in _FILES}
    if upload.claims:
        config = json.loads(files[_FILES[0]]) | {"r": upload.claims}
        files[_FILES[0]] = json.dumps(config, indent=2).encode()
    return files


def _verdict(version_id: str, workers: Workers) -> AdapterVersion:
    workers.check(version_id)
    deadline = time.monotonic() + _VERDICT_SECONDS
    while True:
        with tenant_scope(ALL_TENANTS):
            found = AdapterVersion.objects.get(id=version_id)
        if found.state in (State.READY, State.REJECTED):
            return found
        if time.monotonic() > deadline:
            raise StackProblem(f"version {version_id} is still {found.state!r} after {_VERDICT_SECONDS:.0f} s")
        time.sleep(0.2)


def adapter_named(house: House, name: str) -> Adapter:
    with tenant_scope(house.tenant.id):
        return Adapter.objects.get(tenant=house.tenant, name=name, deleted_at=None)


def share(owner: House, name: str, grantee: House, *, at: datetime) -> None:
    """With a mark-up: each token of it earns its owner something."""
    adapter, actor = adapter_named(owner, name), owner.owner
    with made_at(at):
        create_grant(
            tenant=owner.tenant, actor=actor.id, user=actor, adapter_id=adapter.id, grantee=grantee.company.slug
        )
        set_markup(
            tenant=owner.tenant, adapter_id=adapter.id, grantee=grantee.tenant, per_million=MARKUP, actor=actor.id
        )


def release_by_canary(house: House, name: str, *, at: datetime) -> None:
    actor = house.owner.id
    with made_at(at):
        set_alias(
            tenant=house.tenant, actor=actor, adapter_id=adapter_named(house, name).id,
            weights={1: 100 - CANARY_PERCENT, 2: CANARY_PERCENT},
        )  # fmt: skip


def pin(house: House, name: str, *, at: datetime) -> None:
    with made_at(at):
        set_pin(tenant=house.tenant, actor=house.owner.id, adapter_id=adapter_named(house, name).id, pinned=True)


def compare_versions(house: House, name: str, workers: Workers, *, now: datetime) -> None:
    """The canary beside what serves, on prompts that were kept for it; asked of the engine now."""
    adapter, user = adapter_named(house, name), house.owner
    with made_at(now - timedelta(hours=3)):
        prompts = create_prompt_set(
            tenant=house.tenant, actor=user.id, user=user, adapter_id=adapter.id, name="everyday questions",
            prompts=_PROMPTS,
        )  # fmt: skip
    found = start_evaluation(
        tenant=house.tenant, actor=user.id, user=user, key_id=None, adapter_id=adapter.id, set_id=prompts.id,
        candidate=2, baseline=1, max_tokens=32,
    )  # fmt: skip
    workers.evaluate(found.id)
