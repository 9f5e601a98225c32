"""What a tenant may see beyond its own rows: everything else follows from the models (`tenants.isolation`)."""

from typing import Final

from tenants.isolation_rules import Beyond, Readable

_GRANTS: Final = "adapters_adaptergrant"


def _where(condition: str) -> Readable:
    """Rows for which there is such a grant."""
    return Readable(f"EXISTS (SELECT 1 FROM {_GRANTS} given WHERE {condition})", by=_GRANTS)  # noqa: S608


def _of_adapter(column: str) -> Readable:
    return _where(f"given.grantee_id = {{me}} AND given.adapter_id = {column}")


BEYOND_ITS_OWN: Final = Beyond(
    # Prices for all, and the platform's side of a tenant's bookings. Whoever books first opens the platform's account.
    shared=frozenset({"billing_price", "billing_ledgeraccount"}),
    added=frozenset({"billing_ledgeraccount"}),
    # What is shared with it: the grant itself, the adapter, and what its name answers with. Who shares with whom is
    # known to both.
    readable={
        _GRANTS: Readable("grantee_id = {me}", by=_GRANTS),
        "adapters_adapter": _of_adapter("adapters_adapter.id"),
        "adapters_adapterversion": _of_adapter("adapters_adapterversion.adapter_id"),
        "adapters_aliassplit": _of_adapter("adapters_aliassplit.adapter_id"),
        "tenants_tenant": _where(
            "(given.grantee_id = {me} AND given.tenant_id = tenants_tenant.id) "
            "OR (given.tenant_id = {me} AND given.grantee_id = tenants_tenant.id)"
        ),
    },
    operators=frozenset({"billing_enginerecord"}),
    append_only=frozenset({"tenants_auditrow"}),
)
