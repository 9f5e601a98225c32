"""Which usage is meant: a tenant's, on [start, end), of certain adapters, keys, members or models."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final, Literal

from django.db.models import Q

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
_JOINS: Final = """FROM billing_usageevent e JOIN tenants_apikey k ON k.id = e.key_id
LEFT JOIN tenants_user u ON u.id = k.created_by_id"""
_SPAN: Final = "WHERE e.tenant_id = %(tenant)s AND e.finished_at >= %(start)s AND e.finished_at < %(end)s"


@dataclass(frozen=True)
class Slice:
    """only: the group that is meant, by what it is a group of; nothing named: all."""

    tenant_id: str
    start: datetime
    end: datetime
    only: Mapping[Split, str] = field(default_factory=lambda: MappingProxyType({}))

    def sql(self, joins: str = "") -> str:
        """FROM and WHERE: `e` is the usage event, `k` its key, `u` who issued that. joins: more of them."""
        wanted = (f"AND {NAMED[split][0]} = %(only_{split})s" for split in SPLITS if split in self.only)
        return " ".join((_JOINS, joins, _SPAN, *wanted))

    def params(self, **more: Any) -> dict[str, Any]:
        only = {f"only_{split}": group for split, group in self.only.items()}
        return {"tenant": self.tenant_id, "start": self.start, "end": self.end, **only, **more}

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
