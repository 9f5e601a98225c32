"""Each request as the door and the journal's reader take it: held, settled, read from the journal, booked once."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from psycopg import AsyncConnection
from psycopg_pool import AsyncConnectionPool

from controlplane.adapters.queries import resolve_model
from controlplane.billing.pricing import PinnedPrice, most_it_may_cost
from controlplane.billing.rollup_models import DAY
from controlplane.billing.services import price_for
from controlplane.billing.spans import unit_of
from controlplane.embedded.month.journal import MonthsEngine
from controlplane.embedded.month.people import House
from controlplane.embedded.month.traffic import Asked, month_of
from controlplane.inference.resources import conninfo
from controlplane.inference.settlement import Account, Ended, settle_request
from controlplane.quotas.services import reserve
from tenants.ids import new_id
from tenants.sql import Plan, Pool, Row, run_async

# So many requests share a transaction: each costs no commit of its own, and none waits long for the rows it locks.
_TOGETHER: Final = 100
_HOLD_SECONDS: Final = 3600


@dataclass(frozen=True)
class Served:
    """Whom a request of some key for some model is charged to."""

    adapter_id: str | None
    version_id: str | None
    name: str
    price: PinnedPrice


class Counter:
    """Serves one company's requests. Names and prices are looked up once: they hold for the whole month."""

    def __init__(self, house: House, base_model: str) -> None:
        self._house = house
        self._base_model = base_model
        self._known: dict[tuple[str, int | None], Served] = {}

    @property
    def tenant_id(self) -> str:
        return self._house.tenant.id

    async def serve(self, pool: Pool, asked: Sequence[Asked]) -> list[str]:
        """Their request ids. Those whose door died are held, and for the journal to settle."""
        accounts = [await self._account(pool, each) for each in asked]
        ids = [new_id("req") for _ in asked]
        for start in range(0, len(asked), _TOGETHER):
            part = slice(start, start + _TOGETHER)
            await run_async(pool, _served(ids[part], asked[part], accounts[part]), tenant=self._house.tenant.id)
        return ids

    async def _account(self, pool: Pool, asked: Asked) -> Account:
        found = self._known.get((asked.model, asked.number)) or await self._look_up(pool, asked)
        self._known[asked.model, asked.number] = found
        return Account(
            self._house.tenant.id, self._house.keys[asked.key].id, found.adapter_id, found.version_id, found.name,
            self._base_model, found.price,
        )  # fmt: skip

    async def _look_up(self, pool: Pool, asked: Asked) -> Served:
        tenant = self._house.tenant.id
        model = await run_async(
            pool, resolve_model(tenant_id=tenant, model=f"{asked.model}@{asked.number}", pick=0.0), tenant=tenant
        )
        adapter_id = model.adapter_id if model else None
        price = await run_async(
            pool, price_for(tenant_id=tenant, base_model=self._base_model, adapter_id=adapter_id), tenant=tenant
        )
        if model is None:
            assert not asked.model, asked.model
            return Served(None, None, self._base_model, price)
        return Served(model.adapter_id, model.version_id, model.name, price)


def _served(ids: Sequence[str], asked: Sequence[Asked], accounts: Sequence[Account]) -> Plan[None]:
    for request_id, each, account in zip(ids, asked, accounts, strict=True):
        prompt = each.usage.prompt_tokens
        yield from reserve(
            request_id=request_id, tenant_id=account.tenant_id, key_id=account.key_id, tokens=prompt + each.most_tokens,
            amount=most_it_may_cost(account.price, prompt=prompt, max_completion=each.most_tokens),
            ttl_seconds=_HOLD_SECONDS, adapter_id=account.adapter_id, context=account.to_context(),
        )  # fmt: skip
        if each.first_at is not None:
            yield from settle_request(account, _ended(request_id, each))


def _ended(request_id: str, asked: Asked) -> Ended:
    return Ended(
        request_id, asked.usage, asked.finish_reason, asked.started_at, asked.finished_at, first_at=asked.first_at
    )


def serve_all(counters: Mapping[str, Counter], asked: Sequence[Asked], engine: MonthsEngine) -> None:
    """As the door does it: each company's requests in their order, companies side by side."""
    by_company = {slug: [each for each in asked if each.company == slug] for slug in counters}
    for slug, ids in asyncio.run(_serve_all(counters, by_company)).items():
        for request_id, each in zip(ids, by_company[slug], strict=True):
            engine.write(request_id, counters[slug].tenant_id, each)


async def _serve_all(
    counters: Mapping[str, Counter], asked: Mapping[str, Sequence[Asked]]
) -> dict[str, list[str]]:  # fmt: skip
    async with AsyncConnectionPool(
        conninfo("veneer-story"), connection_class=AsyncConnection[Row], kwargs={"autocommit": True}, min_size=1,
        max_size=3,
    ) as pool:  # fmt: skip
        found = await asyncio.gather(*(counter.serve(pool, asked[slug]) for slug, counter in counters.items()))
    return dict(zip(counters, found, strict=True))


def by_month(asked: Sequence[Asked], now: datetime) -> Iterator[tuple[datetime | None, list[Asked]]]:
    """Oldest first: each calendar month (UTC) by its start, of the current one what was before today; then, under None,
    today's."""
    today = unit_of(now, DAY)
    earlier = [each for each in asked if each.started_at < today]
    for month in sorted({month_of(each.started_at) for each in earlier}):
        yield month, [each for each in earlier if month_of(each.started_at) == month]
    yield None, [each for each in asked if each.started_at >= today]
