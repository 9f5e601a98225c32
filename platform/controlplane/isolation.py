"""What a tenant may see beyond its own rows: everything else follows from the models (`tenants.isolation`)."""

from typing import Final

from tenants.isolation_rules import Beyond

BEYOND_ITS_OWN: Final = Beyond(
    # Prices for all, and the platform's side of a tenant's bookings. Whoever books first opens the platform's account.
    shared=frozenset({"billing_price", "billing_ledgeraccount"}),
    added=frozenset({"billing_ledgeraccount"}),
    operators=frozenset(
        {
            "billing_enginerecord",
            "billing_enginequarter",
            "billing_takenback",
            "billing_providernotice",
        }
    ),
    published=frozenset({"billing_rollupmark", "billing_bookscurrency"}),
    append_only=frozenset({"tenants_auditrow"}),
)
