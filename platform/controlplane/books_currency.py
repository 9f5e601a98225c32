"""Amounts are kept without their currency: what is on the books must not come to mean another one."""

from typing import Final

from controlplane.currency import VARIABLE, currency
from controlplane.env import BadSetting
from tenants.sql import Plan, Query

_RECORDED: Final = "SELECT currency, since FROM billing_bookscurrency"
# Agreed amounts count as booked ones do: a price of 2 dollars is not one of 2 euros.
_RECORD: Final = """
INSERT INTO billing_bookscurrency AS books (id, currency, since) VALUES (1, %(currency)s, now())
ON CONFLICT (id) DO UPDATE SET currency = EXCLUDED.currency, since = EXCLUDED.since
WHERE books.currency = EXCLUDED.currency OR NOT (
    EXISTS (SELECT FROM billing_price) OR EXISTS (SELECT FROM billing_ledgerentry)
    OR EXISTS (SELECT FROM billing_agreement) OR EXISTS (SELECT FROM billing_markup)
    OR EXISTS (SELECT FROM billing_payment)
    OR EXISTS (SELECT FROM quotas_quota WHERE budget > 0 OR soft_budget > 0 OR postpaid_limit > 0)
) RETURNING currency
"""


def keep_currency() -> Plan[None]:
    """To be run, as the platform, by whatever starts to work with amounts. Raises BadSetting where there are amounts in
    another currency than the installation's; until there are any, it may be changed."""
    ours = currency()
    recorded = yield Query(_RECORDED, {})
    if recorded and recorded[0]["currency"] == ours:
        return
    if not (yield Query(_RECORD, {"currency": ours})):
        [found] = yield Query(_RECORDED, {})
        theirs, since = found["currency"], found["since"]
        raise BadSetting(
            f"{VARIABLE}={ours!r}, but the amounts in this database are {theirs} since {since:%Y-%m-%d}: set "
            f"{VARIABLE}={theirs}. Another currency needs an installation of its own, see docs/billing.md"
        )
