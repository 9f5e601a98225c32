"""What was agreed when a request was let in holds until its end, whatever is changed while it streams."""

from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal

import openai
import pytest

from controlplane.billing.models import Price
from controlplane.billing.prices import Rates, set_price
from controlplane.billing.statements import close_period
from controlplane.inference.books import check_records, newest_event
from controlplane.quotas.limits import LimitChanges, set_limits
from controlplane.quotas.services import expire_holds
from tenants.key_services import revoke_key, rotate_key
from tests.controlplane.fake_engine import Script
from tests.controlplane.inference.conftest import BASE, Caller, Served, holds_of, usage_of, wait_for

HELLO = [{"role": "user", "content": "hello"}]
DEAR = Rates(input=Decimal(1000), cached_input=Decimal(1000), output=Decimal(1000))


def dearer(caller: Caller) -> None:
    set_price(base_model=BASE, tenant=caller.tenant, rates=DEAR, actor="usr")


def rotated(caller: Caller) -> None:
    assert rotate_key(tenant=caller.tenant, key_id=caller.key_id, actor="usr", grace=timedelta(0))


def revoked(caller: Caller) -> None:
    assert revoke_key(tenant=caller.tenant, key_id=caller.key_id, actor="usr")


def broke(caller: Caller) -> None:
    changes = LimitChanges(budget=Decimal(0), tokens_per_minute=1, tokens_per_day=1, concurrency=1)
    set_limits(tenant=caller.tenant, changes=changes, actor="usr")


def limited(caller: Caller) -> None:
    """The key has a row of limits from now on, which its hold did not know."""
    set_limits(tenant=caller.tenant, changes=LimitChanges(budget=Decimal(5)), key_id=caller.key_id, actor="usr")


def closed(caller: Caller) -> None:
    close_period(tenant=caller.tenant, actor="usr")


def swept(caller: Caller) -> None:
    assert expire_holds() == 0


@pytest.mark.parametrize("change", [dearer, rotated, revoked, broke, limited, closed, swept])
def test_it_is_charged_as_it_was_let_in(
    client: openai.OpenAI, caller: Caller, stack: Served, change: Callable[[Caller], None]
) -> None:
    stack.engine.script = Script(delay=0.02)
    stream = client.chat.completions.create(model=BASE, messages=HELLO, max_tokens=8, stream=True)
    chunks = iter(stream)
    next(chunks)
    change(caller)
    for _ in chunks:
        pass
    wait_for(lambda: usage_of(caller), "the settlement")
    [event], [hold] = usage_of(caller), holds_of(caller)
    price = Price.objects.get(id=event.price_id)
    uncached = event.prompt_tokens - event.cached_tokens
    amount = uncached * price.input + event.cached_tokens * price.cached_input + event.completion_tokens * price.output
    assert (price.input, event.amount) == (Decimal("1.5"), amount / 10**6)
    assert (hold.state, hold.settled_amount, hold.late, event.late) == ("settled", event.amount, False, False)
    broken = [each for each in check_records(newest_event()).findings if each.broken and "journal" not in each.name]
    assert not broken
