"""The story in a database: the books hold, the same seed tells the same, and every page has something to show."""

from typing import Any

import pytest

from controlplane.billing.models import Alert, Discrepancy, UsageEvent, WebhookAttempt
from controlplane.embedded.month.guard import check_may_tell
from controlplane.embedded.month.news import NOTE
from controlplane.embedded.problems import StackProblem
from tenants.models import User
from tenants.scope import ALL_TENANTS, tenant_scope
from tests.controlplane.conftest import Api, signed_in
from tests.controlplane.story.conftest import Twice

pytestmark = pytest.mark.django_db

# Broken on purpose: somebody has yet to look at a line of the journal that nobody is charged for.
STRAY = {"no discrepancy is open", "each line of the engine's journal has its usage event, with the same tokens"}
TENANTS_PAGES = (
    "keys", "adapters", "members", "invitations", "audit", "usage", "usage/timeseries", "usage/generations", "limits",
    "alerts", "invoices", "statements", "prices", "batches", "account/sessions",
)  # fmt: skip
OPERATORS_PAGES = (
    "operator/tenants", "operator/people", "operator/alerts", "operator/tenant-alerts", "operator/discrepancies",
    "operator/audit", "operator/batches", "operator/prices", "operator/margin?group_by=tenant", "operator/base-models",
)  # fmt: skip


def items(body: Any) -> int:
    """How many rows the lists of an answer have together."""
    lists = [value for value in body.values() if isinstance(value, list)] if isinstance(body, dict) else [body]
    return sum(map(len, lists))


def test_the_books_hold_but_for_what_is_told_on_purpose(twice: Twice) -> None:
    report = twice.report
    assert {finding.name for finding in report.findings if finding.broken} == STRAY
    assert [finding.broken for finding in report.findings if finding.broken] == [1, 1]
    assert not any(report.warnings.values()), report.warnings
    with tenant_scope(ALL_TENANTS):
        assert UsageEvent.objects.count() >= twice.told.generations > 200


def test_the_reconciler_has_found_two_strays_and_one_is_explained(twice: Twice) -> None:
    kinds = Discrepancy.objects.order_by("id").values_list("kind", "note")
    assert list(kinds) == [("journal_without_hold", NOTE), ("journal_without_hold", None)]


def test_every_page_of_a_tenant_has_something_to_show(twice: Twice) -> None:
    api = signed_in(twice.told.houses["northwind"].owner)
    empty = [path for path in TENANTS_PAGES if not items(_got(api, path))]
    assert empty == []
    assert _got(api, "usage/latency")["ttft_ms"]
    assert float(_got(api, "usage/composition")["amount"]) > 0
    [adapter] = [each for each in _got(api, "adapters")["data"] if each["name"] == "support-bot"]
    for path in ("traffic", "prompt-sets", "evaluations"):
        assert items(_got(api, f"adapters/{adapter['id']}/{path}")), path
    sides = _got(api, f"adapters/{adapter['id']}/traffic?minutes=1440")["sides"]
    assert [side["version"] for side in sides] == [1, 2]
    assert items(_got(api, "adapters/shared")), "what Harbor shares"
    [endpoint] = _got(api, "webhooks")["data"]
    assert items(_got(api, f"webhooks/{endpoint['id']}/deliveries"))
    assert _got(signed_in(twice.told.houses["harbor"].owner), "markups")


def test_every_page_of_the_operator_has_something_to_show(twice: Twice) -> None:
    api = signed_in(User.objects.get(email="operator@veneer.example"))
    assert [path for path in OPERATORS_PAGES if not items(_got(api, path))] == []
    margin = _got(api, "operator/margin?group_by=tenant")
    assert float(margin["device"]["idle_seconds"]) > 0


def _got(api: Api, path: str) -> Any:
    status, body = api.get(path)
    assert status == 200, (path, body)
    return body


def test_what_people_are_told(twice: Twice) -> None:
    with tenant_scope(ALL_TENANTS):
        kinds = set(Alert.objects.values_list("kind", flat=True))
        statuses = set(WebhookAttempt.objects.values_list("status", flat=True))
    wanted = {
        "budget.threshold",
        "key.expiring",
        "adapter.rejected",
        "adapter.ready",
        "discrepancy.opened",
    }
    assert wanted <= kinds
    assert statuses == {200, 503}


def test_it_is_told_once(twice: Twice) -> None:
    with pytest.raises(StackProblem, match=r"harbor, lexicon, northwind, pixelpost: here already.*VENEER_HOME"):
        check_may_tell(beside_others=True)


def test_the_same_seed_tells_the_same_figures(twice: Twice) -> None:
    assert twice.first == twice.second
    assert all(twice.first)
