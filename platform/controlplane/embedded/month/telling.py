"""The month, told from its first day to this minute through what the platform has for it: `manage.py seed_story`."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Final

from django.db.models import Sum

from controlplane.billing.models import Discrepancy, UsageEvent
from controlplane.billing.rollup import roll_up
from controlplane.billing.rollup_models import DAY
from controlplane.billing.spans import unit_of
from controlplane.embedded.credentials import Credentials
from controlplane.embedded.month import adapters, batch, money, news, people
from controlplane.embedded.month.cast import COMPANIES, Company
from controlplane.embedded.month.clock import database_now, move_back
from controlplane.embedded.month.door import Counter, by_month, serve_all
from controlplane.embedded.month.journal import MonthsEngine, note_uptime
from controlplane.embedded.month.people import House
from controlplane.embedded.month.traffic import Asked, Days, came_at, month_of, traffic_of
from controlplane.embedded.month.workers import Workers
from controlplane.embedded.terminal import Stopwatch, say
from controlplane.inference.ingest import ingest_journal
from engine.protocol import Description
from tenants.models import User
from tenants.scope import ALL_TENANTS, tenant_scope

_LONGEST_DAYS: Final = 62


@dataclass(frozen=True)
class Told:
    """What there is now. houses: those that came, by slug."""

    houses: dict[str, House]
    generations: int


def story_days(seed: int, now: datetime, *, days: int | None, scale: float) -> Days:
    """From the first of last month, so that one whole month is finished and invoiced; or of the last `days`."""
    last_month = month_of(month_of(now) - timedelta(days=1))
    start = unit_of(now - timedelta(days=min(days, _LONGEST_DAYS)), DAY) if days else last_month
    return Days(seed, start, now, scale)


@tenant_scope(ALL_TENANTS)
def tell(
    days: Days, *, operator: User, credentials: Credentials, served: Description, workers: Workers
) -> Told:  # fmt: skip
    """served: what the engine says of itself; of its work the story needs the trials of adapters, an evaluation and a
    batch. All other traffic is the story's own. Raises StackProblem."""
    houses = [_move_in(company, days, operator, credentials, served.base_model, workers) for company in COMPANIES]
    by_slug = {house.company.slug: house for house in houses}
    generations = _go_through(days, houses, by_slug, served.base_model, operator)
    took = Stopwatch()
    roll_up()
    for house in houses:
        money.close_finished_periods(house, start=days.start, now=days.now)
        money.pay(house, operator=operator, at=days.now - timedelta(days=2))
        money.set_final_limits(house, operator=operator, spent=_spent(house, days.now), now=days.now)
        people.go_on(house, days.now)
    say(f"periods closed, invoices issued, limits set ({took})")
    took = Stopwatch()
    adapters.compare_versions(by_slug["northwind"], "support-bot", workers, now=days.now)
    for slug, key, model in (("pixelpost", "studio", "brand-voice"), ("northwind", "web chat", "support-bot")):
        batch.start_batches(by_slug[slug], key, model, context_len=served.context_len)
    news.tell(houses, days.now)
    roll_up()
    say(f"evaluation, batches, alerts and webhooks ({took})")
    return Told(by_slug, generations)


def _move_in(
    company: Company, days: Days, operator: User, credentials: Credentials, base_model: str, workers: Workers
) -> House:
    took = Stopwatch()
    house = people.move_in(company, operator=operator, credentials=credentials, at=days.start + timedelta(hours=7))
    money.set_terms(house, operator=operator, base_model=base_model, at=days.start + timedelta(hours=7, minutes=20))
    for upload in company.uploads:
        adapters.bring(house, upload, workers, base_model=base_model, at=came_at(upload, days))
    say(f"{company.name}: {len(company.people)} people, {len(company.uploads)} uploads checked ({took})")
    return house


def _go_through(days: Days, houses: Sequence[House], by_slug: dict[str, House], base_model: str, operator: User) -> int:
    """All requests, a calendar month at a time. Returns how many."""
    took = Stopwatch()
    start = days.start + timedelta(hours=9)
    adapters.share(by_slug["harbor"], "sql-writer", by_slug["northwind"], at=start)
    adapters.pin(by_slug["northwind"], "support-bot", at=start)
    asked = {house.company.slug: traffic_of(house.company, days) for house in houses}
    engine, known = MonthsEngine(base_model), set(Discrepancy.objects.values_list("id", flat=True))
    note_uptime(days)
    news.leave_strays(by_slug["lexicon"], engine, days.now)
    _serve(houses, [each for of_one in asked.values() for each in of_one], engine, base_model, days)
    for house in houses:
        people.note_last_use(house, {each.key: each.finished_at for each in asked[house.company.slug]})
    news.explain_one(operator, known_before=known)
    adapters.release_by_canary(by_slug["northwind"], "support-bot", at=days.now - timedelta(days=2))
    news.help_out(by_slug["lexicon"], operator, days.now - timedelta(days=5))
    total = sum(map(len, asked.values()))
    say(f"{total:,} generations held, journalled, settled and booked ({took})")
    return total


def _serve(
    houses: Sequence[House], asked: list[Asked], engine: MonthsEngine, base_model: str, days: Days
) -> None:  # fmt: skip
    counters = {house.company.slug: Counter(house, base_model) for house in houses}
    for month, part in by_month(asked, days.now):
        since = database_now()
        serve_all(counters, part, engine)
        _read(engine)
        move_back([house.tenant.id for house in houses], since=since, month=month)


def _read(engine: MonthsEngine) -> None:
    """Another reader may be at the journals of other engines: wait until this one is read."""
    while not engine.is_read:
        if not ingest_journal(engine):
            time.sleep(0.05)


def _spent(house: House, now: datetime) -> dict[str, Decimal]:
    """This month's, by key; of the whole tenant under the empty text."""
    rows = UsageEvent.objects.filter(tenant=house.tenant, finished_at__gte=month_of(now))
    found = {row["key__name"]: row["amount"] for row in rows.values("key__name").annotate(amount=Sum("amount"))}
    return found | {"": sum(found.values(), Decimal(0))}
