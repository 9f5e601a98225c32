"""The tenants' alerts, as operators read them."""

import pytest

from controlplane.billing.models import Alert
from tests.controlplane.conftest import Api, Cast


def test_of_every_tenant_by_kind_and_by_name(operator: Api, cast: Cast) -> None:
    for tenant, kind in (
        (cast.acme, "budget.threshold"), (cast.globex, "budget.threshold"), (cast.acme, "key.expiring"),
        (None, "discrepancy.opened"),
    ):  # fmt: skip
        Alert.objects.create(tenant=tenant, kind=kind, subject="s", occasion="o", data={"name": "n"})

    def found(query: str = "") -> list[tuple[str, str]]:
        status, body = operator.get(f"operator/tenant-alerts{query}")
        assert status == 200
        return sorted((row["tenant"], row["kind"]) for row in body["data"])

    assert found() == [("acme", "budget.threshold"), ("acme", "key.expiring"), ("globex", "budget.threshold")]
    assert found("?kind=budget.threshold") == [("acme", "budget.threshold"), ("globex", "budget.threshold")]
    assert found("?search=GLO") == [("globex", "budget.threshold")]
    assert found("?kind=discrepancy.opened") == []  # the platform's own, which has a list of its own


@pytest.mark.parametrize(("query", "field"), [("kind=x", "kind"), ("search=" + "x" * 101, "search")])
def test_a_wrong_filter_names_the_field(operator: Api, query: str, field: str) -> None:
    status, body = operator.get(f"operator/tenant-alerts?{query}")
    assert (status, body["error"]["param"]) == (400, field)
