"""Which usage is meant: a tenant's, on [start, end), of certain adapters, keys, members or models."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final, Literal

from django.db.models import Q

from controlplane.billing.reading import USED_BY_TENANT, reading
from tenants.sql import Plan, Query, Row

Split = Literal["adapter", "key", "member", "model"]
SPLITS: Final[tuple[Split, ...]] = ("adapter", "key", "member", "model")
PLAYGROUND: Final = "playground"
NOBODY: Final = "nobody"

# What a group is, and what to call it. Playground keys come and go every few minutes: they are one group.
NAMED: Final[Mapping[Split, tuple[str, str]]] = {
    "adapter": (
        "coalesce(e.adapter_id, e.base_model)",
        "max(CASE WHEN e.adapter_id IS NULL THEN e.base_model ELSE split_part(e.model, '@', 1) END)",
    ),
    "key": (
        f"CASE WHEN k.hidden THEN '{PLAYGROUND}' ELSE e.key_id END",
        "max(CASE WHEN k.hidden THEN 'Playground' ELSE k.name END)",
    ),
    "member": (f"coalesce(k.created_by_id, '{NOBODY}')", "max(coalesce(u.email, 'No member'))"),
    "model": ("e.model", "max(e.model)"),
}
_WHO: Final = "JOIN tenants_apikey k ON k.id = e.key_id LEFT JOIN tenants_user u ON u.id = k.created_by_id"
_OF_KEYS: Final = frozenset({"key", "member"})
_SPAN: Final = "e.tenant_id = %(tenant)s AND e.finished_at >= %(start)s AND e.finished_at < %(end)s"


@dataclass(frozen=True)
class Slice:
    """only: the group that is meant, by what it is a group of; nothing named: all."""

    tenant_id: str
    start: datetime
    end: datetime
    only: Mapping[Split, str] = field(default_factory=lambda: MappingProxyType({}))

    def of_sums(
        self, select: str, then: str = "", *, joins: str = "", step: str | None = None, tz: str = "UTC"
    ) -> Plan[list[Row]]:
        """`SELECT select FROM used e joins WHERE ... then` (`reading`), with `k` the key and `u` who issued it. step,
        tz: how rows are grouped by time, where they are."""
        found = yield from reading(self.start, self.end, tenant_id=self.tenant_id, step=step, tz=tz)
        sql = f"WITH {USED_BY_TENANT} SELECT {select} FROM used e {_WHO} {joins} WHERE {self._only('true')} {then}"  # noqa: S608  # ours
        return (yield Query(sql, found.params(**self._groups())))

    def of_events(self, select: str) -> Plan[list[Row]]:
        """`SELECT select` of the usage events `e`, one by one. Without the keys unless they are asked about: so that an
        index alone may answer."""
        who = _WHO if _OF_KEYS & self.only.keys() else ""
        sql = f"SELECT {select} FROM billing_usageevent e {who} WHERE {self._only(_SPAN)}"  # noqa: S608  # ours
        params = {"tenant": self.tenant_id, "start": self.start, "end": self.end}
        return (yield Query(sql, {**params, **self._groups()}))

    def _only(self, condition: str) -> str:
        wanted = (f"{NAMED[split][0]} = %(only_{split})s" for split in SPLITS if split in self.only)
        return " AND ".join((condition, *wanted))

    def _groups(self) -> dict[str, Any]:
        return {f"only_{split}": group for split, group in self.only.items()}

    def condition(self) -> Q:
        """The same rows, of `UsageEvent`."""
        found = Q(tenant_id=self.tenant_id, finished_at__gte=self.start, finished_at__lt=self.end)
        for split, group in self.only.items():
            found &= _group(split, group)
        return found


def _group(split: Split, group: str) -> Q:
    match split:
        case "adapter":
            return Q(adapter_id=group) | Q(adapter_id=None, base_model=group)
        case "key":
            return Q(key__hidden=True) if group == PLAYGROUND else Q(key_id=group, key__hidden=False)
        case "member":
            return Q(key__created_by=None) if group == NOBODY else Q(key__created_by_id=group)
        case "model":
            return Q(model=group)
