"""The price plan: what is listed is what a request is charged, to the last decimal."""

from datetime import timedelta
from fractions import Fraction

import pytest
from django.utils import timezone
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from controlplane.adapters.models import Adapter, AdapterGrant, AdapterVersion, AliasSplit
from controlplane.adapters.states import State
from controlplane.billing.markups import set_markup
from controlplane.billing.models import Markup, Price
from controlplane.billing.price_plan import Asked, offers
from controlplane.billing.pricing import amount_of
from controlplane.billing.services import price_for
from tenants.models import Tenant
from tenants.sql import run_sync
from tests.controlplane.conftest import Api, Cast, signed_in
from tests.controlplane.money import BASE, D

MILLION = 10**6
RATE = st.decimals(0, 40, places=6)


def price(tenant: Tenant | None = None, adapter_id: str | None = None, base: str = BASE, **more: object) -> Price:
    rates = {"input": D("0.5"), "cached_input": D("0.1"), "output": D("1.5"), "created_by": "test", **more}
    return Price.objects.create(base_model=base, tenant=tenant, adapter_id=adapter_id, **rates)  # type: ignore[misc]


def shared(owner: Tenant, grantee: Tenant, name: str = "bot") -> Adapter:
    adapter = Adapter.objects.create(tenant=owner, name=name, base_model=BASE)
    version = AdapterVersion.objects.create(
        tenant=owner, adapter=adapter, number=1, state=State.READY, digest="d" * 64, rank=8, uri="file:///none",
        size_bytes=7, ready_at=timezone.now(),
    )  # fmt: skip
    AliasSplit.objects.create(adapter=adapter, version=version, weight=100)
    AdapterGrant.objects.create(tenant=owner, adapter=adapter, grantee=grantee)
    return adapter


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    scopes=st.lists(
        st.tuples(st.booleans(), st.booleans(), RATE, RATE, RATE, RATE), max_size=4, unique_by=lambda each: each[:2]
    ),
    markup=st.decimals(0, 10, places=6),
)
def test_what_is_listed_is_what_is_charged(cast: Cast, scopes: list[tuple], markup: D) -> None:  # type: ignore[type-arg]
    """Whichever of the prices is the most specific, against what the door pins for the same request."""
    base = f"base-{Price.objects.count()}-{Markup._base_manager.count()}"
    adapter_id = f"adp_{base}"
    for of_tenant, of_adapter, low, high, output, surcharge in scopes:
        price(
            cast.acme if of_tenant else None, adapter_id if of_adapter else None, base, input=max(low, high),
            cached_input=min(low, high), output=output, adapter_surcharge=surcharge,
        )  # fmt: skip
    if markup:
        set_markup(tenant=cast.globex, adapter_id=adapter_id, grantee=cast.acme, per_million=markup, actor="usr")
    asked = [Asked(base), Asked(base, adapter_id), Asked(base, runs_adapter=True)]
    for each, offer in zip(asked, run_sync(offers(asked, tenant_id=cast.acme.id)), strict=True):
        name = each.adapter_id or ("adp_unnamed" if each.runs_adapter else None)
        reaches = [s for s in scopes if not s[1] or each.adapter_id]
        if not reaches:
            assert offer is None
            continue
        assert offer is not None
        pinned = run_sync(price_for(tenant_id=cast.acme.id, base_model=base, adapter_id=name))
        charged = [
            amount_of(pinned, prompt=MILLION, cached=0, completion=0),
            amount_of(pinned, prompt=MILLION, cached=MILLION, completion=0),
            amount_of(pinned, prompt=0, cached=0, completion=MILLION),
        ]
        assert [offer.input, offer.cached_input, offer.output] == charged
        assert Fraction(offer.markup) == (Fraction(markup) if each.adapter_id else 0)


def test_the_plan_lists_what_may_be_called(cast: Cast, owner: Api) -> None:
    price(adapter_surcharge=D("0.2"), batch_discount=50)
    own = Adapter.objects.create(tenant=cast.acme, name="special", base_model=BASE)
    price(cast.acme, own.id, input=D(9), cached_input=D(1), output=D(9))
    theirs = shared(cast.globex, cast.acme)
    set_markup(tenant=cast.globex, adapter_id=theirs.id, grantee=cast.acme, per_million=D("2.5"), actor="usr")
    found = {row["model"] + " " + row["kind"]: row for row in owner.get("price-plan")[1]["data"]}
    assert {
        name: (row["input"], row["cached_input"], row["output"], row["surcharge"], row["markup"])
        for name, row in found.items()
    } == {
        f"{BASE} base": ("0.5", "0.1", "1.5", "0", "0"),
        f"{BASE} any_adapter": ("0.7", "0.3", "1.7", "0.2", "0"),
        "special adapter": ("9", "1", "9", "0", "0"),
        "globex/bot shared": ("3.2", "2.8", "4.2", "0.2", "2.5"),
    }
    assert found["globex/bot shared"]["owner"] == "globex"
    assert {row["batch_discount"] for row in found.values()} == {50, 0}


def test_nobody_sees_anothers_price_adapter_or_mark_up(cast: Cast) -> None:
    price()
    secret = Adapter.objects.create(tenant=cast.acme, name="secret", base_model=BASE)
    price(cast.acme, secret.id, output=D(7))
    price(cast.acme, output=D(3))
    theirs = shared(cast.acme, cast.globex)
    set_markup(tenant=cast.acme, adapter_id=theirs.id, grantee=cast.globex, per_million=D(1), actor="usr")
    third = Tenant.objects.create(slug="third", name="Third")
    AdapterGrant.objects.create(tenant=cast.acme, adapter=theirs, grantee=third)
    rows = signed_in(cast.stranger).get("price-plan")[1]["data"]
    assert [(row["model"], row["output"], row["markup"]) for row in rows] == [
        (BASE, "1.5", "0"), (BASE, "1.5", "0"), ("acme/bot", "2.5", "1"),
    ]  # fmt: skip
    [offer] = run_sync(offers([Asked(BASE, theirs.id)], tenant_id=third.id))
    assert offer is not None
    assert offer.markup == 0


@pytest.mark.django_db
def test_what_has_no_price_now_is_not_listed(cast: Cast, owner: Api) -> None:
    assert owner.get("price-plan")[1] == {"data": []}
    price(base="later", effective_from=timezone.now() + timedelta(days=1))
    day = timedelta(days=1)
    price(base="ended", effective_from=timezone.now() - 2 * day, effective_to=timezone.now() - day)
    assert owner.get("price-plan")[1] == {"data": []}
