"""Reads. The door's are plans (it is asynchronous); the management API's are querysets."""

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.db.models import OuterRef, Prefetch, QuerySet, Subquery

from controlplane.adapters.models import Adapter, AdapterVersion, AliasSplit
from controlplane.adapters.states import State
from controlplane.errors import NotFound
from tenants.models import Tenant
from tenants.sql import Plan, Query, Row

_NUMBER: Final = re.compile(r"[1-9][0-9]{0,8}")


@dataclass(frozen=True)
class ResolvedAdapter:
    """A version that may be served now. name: with its number, as in `pirate@2`. uri: where the engine fetches it."""

    adapter_id: str
    version_id: str
    name: str
    uri: str
    digest: str
    rank: int
    base_model: str


@dataclass(frozen=True)
class ListedModel:
    """What `/v1/models` says of an adapter. id: its name. version_id: the one most of its requests go to. owner: slug
    of the tenant that granted it; None: it is the tenant's own."""

    id: str
    version_id: str
    created: datetime
    base_model: str
    owner: str | None = None


_COLUMNS = """
SELECT a.id AS adapter_id, a.name, a.base_model, v.id AS version_id, v.number, v.uri, v.digest, v.rank
"""
_BY_NUMBER = f"""
{_COLUMNS}, 1 AS weight
FROM adapters_adapter a JOIN adapters_adapterversion v ON v.adapter_id = a.id
WHERE a.tenant_id = %(tenant)s AND a.name = %(name)s AND a.deleted_at IS NULL
  AND v.number = %(number)s AND v.state = 'ready'
"""
_BY_ALIAS = f"""
{_COLUMNS}, s.weight
FROM adapters_adapter a JOIN adapters_aliassplit s ON s.adapter_id = a.id
  JOIN adapters_adapterversion v ON v.id = s.version_id
WHERE a.tenant_id = %(tenant)s AND a.name = %(name)s AND a.deleted_at IS NULL AND v.state = 'ready'
ORDER BY v.number
"""
# Of another tenant's adapter, all that may be seen is in this view: the row itself is its owner's alone.
_GRANTED = """
SELECT adapter_id, name, base_model, version_id, number, uri, digest, rank, coalesce(weight, 1) AS weight
FROM adapters_grantedversion
WHERE grantee_id = %(tenant)s AND owner = %(owner)s AND name = %(name)s AND {which}
ORDER BY number
"""
_GRANTED_BY_NUMBER = _GRANTED.format(which="number = %(number)s")
_GRANTED_BY_ALIAS = _GRANTED.format(which="weight IS NOT NULL")
_PINNED = f"""
{_COLUMNS}
FROM adapters_adapter a JOIN adapters_aliassplit s ON s.adapter_id = a.id
  JOIN adapters_adapterversion v ON v.id = s.version_id
WHERE a.pinned_at IS NOT NULL AND a.base_model = %(base_model)s AND a.deleted_at IS NULL AND v.state = 'ready'
ORDER BY a.pinned_at, v.number
"""
_LISTED = """
SELECT name, base_model, version_id, ready_at, owner FROM (
  (SELECT DISTINCT ON (a.name) a.name, a.base_model, v.id AS version_id, v.ready_at, NULL::text AS owner
   FROM adapters_adapter a JOIN adapters_aliassplit s ON s.adapter_id = a.id
     JOIN adapters_adapterversion v ON v.id = s.version_id
   WHERE a.tenant_id = %(tenant)s AND a.deleted_at IS NULL AND v.state = 'ready'
   ORDER BY a.name, s.weight DESC, v.number DESC)
  UNION ALL
  (SELECT DISTINCT ON (owner, name) name, base_model, version_id, ready_at, owner FROM adapters_grantedversion
   WHERE grantee_id = %(tenant)s AND weight IS NOT NULL ORDER BY owner, name, weight DESC, number DESC)
) listed ORDER BY owner NULLS FIRST, name
"""


def resolve_model(*, tenant_id: str, model: str, pick: float) -> Plan[ResolvedAdapter | None]:
    """`pirate` or `pirate@2` of this tenant, or `acme/pirate` that Acme has granted to it; None when there is no such
    adapter, or none that is ready.

    pick: in [0, 1), chooses between the versions of a split: the same pick, the same version.
    """
    path, at, number = model.partition("@")
    owner, slash, name = path.rpartition("/")
    params: dict[str, object] = {"tenant": tenant_id, "owner": owner, "name": name}
    if "\x00" in path or (at and not _NUMBER.fullmatch(number)):
        return None
    if at:
        rows = yield Query(_GRANTED_BY_NUMBER if slash else _BY_NUMBER, params | {"number": int(number)})
    else:
        rows = yield Query(_GRANTED_BY_ALIAS if slash else _BY_ALIAS, params)
    return _resolved(_picked(rows, pick), f"{owner}{slash}") if rows else None


def _resolved(row: Row, before: str = "") -> ResolvedAdapter:
    return ResolvedAdapter(
        adapter_id=row["adapter_id"],
        version_id=row["version_id"],
        name=f"{before}{row['name']}@{row['number']}",
        uri=row["uri"],
        digest=row["digest"],
        rank=row["rank"],
        base_model=row["base_model"],
    )


def _picked(rows: list[Row], pick: float) -> Row:
    left = pick * sum(row["weight"] for row in rows)
    for row in rows:
        left -= row["weight"]
        if left < 0:
            return row
    return rows[-1]


def listed_models(*, tenant_id: str) -> Plan[list[ListedModel]]:
    """The names that answer now: the tenant's own by name, then what others have granted to it."""
    rows = yield Query(_LISTED, {"tenant": tenant_id})
    return [
        ListedModel(
            f"{row['owner']}/{row['name']}" if row["owner"] else row["name"],
            row["version_id"],
            row["ready_at"],
            row["base_model"],
            row["owner"],
        )
        for row in rows
    ]


def pinned_adapters(*, base_model: str) -> Plan[list[ResolvedAdapter]]:
    """Of all tenants, versions that pinned names answer with; whoever was pinned first comes first."""
    rows = yield Query(_PINNED, {"base_model": base_model})
    return [_resolved(row) for row in rows]


# --- management API: inside tenant_scope(tenant.id) ---------------------------------------------------------------


def adapters_of(tenant: Tenant) -> QuerySet[Adapter]:
    """With everything a page shows of them, in a fixed number of queries."""
    return Adapter.objects.filter(tenant=tenant, deleted_at=None).prefetch_related(
        Prefetch("versions", _with_parts(AdapterVersion.objects.all())),
        Prefetch("splits", AliasSplit.objects.select_related("version").order_by("version__number")),
    )


def adapters_like(tenant: Tenant, text: str, state: str | None) -> QuerySet[Adapter]:
    """Those with the text in their name whose newest version is in the state; `empty`: that have none."""
    rows = adapters_of(tenant).filter(name__contains=text.lower().replace("\x00", ""))
    if state is None:
        return rows
    newest = AdapterVersion.objects.filter(adapter=OuterRef("pk"), state__in=State.live()).order_by("-number")
    rows = rows.annotate(newest_state=Subquery(newest.values("state")[:1]))
    return rows.filter(newest_state=None if state == "empty" else state)


def adapter_of(tenant: Tenant, adapter_id: str) -> Adapter:
    found = adapters_of(tenant).filter(id=adapter_id).first()
    if found is None:
        raise NotFound(f"There is no adapter {adapter_id}.")
    return found


def version_of(tenant: Tenant, version_id: str) -> AdapterVersion:
    found = _with_parts(AdapterVersion.objects.filter(tenant=tenant, id=version_id)).first()
    if found is None:
        raise NotFound(f"There is no version {version_id}.")
    return found


def _with_parts(versions: QuerySet[AdapterVersion]) -> QuerySet[AdapterVersion]:
    live = versions.filter(state__in=State.live())
    return live.prefetch_related("files__parts").order_by("-number")
