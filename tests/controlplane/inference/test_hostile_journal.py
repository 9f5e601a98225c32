"""Lines that somebody else left in the engine's journal: they are kept as they are, and hold up nobody."""

from dataclasses import dataclass
from typing import Any

import pytest

from controlplane.billing.models import Discrepancy, EngineRecord
from engine.protocol import JournalLine, Usage
from tests.controlplane.inference.conftest import Caller, price, usage_of
from tests.controlplane.inference.test_ingest import caller, engine, hold, kinds, line, read

__all__ = ["caller", "engine"]
pytestmark = pytest.mark.django_db(transaction=True)


@dataclass(frozen=True)
class Odd:
    """What of an ordinary line is otherwise."""

    changes: dict[str, Any]
    kind: str = "journal_without_hold"


ODD = {
    "a long id": Odd({"request_id": "x" * 500}),
    "no id": Odd({"request_id": ""}),
    "an id with a zero byte": Odd({"request_id": "req_\x00one"}),
    "a long tenant": Odd({"tenant": "t" * 500}),
    "a tenant with a zero byte": Odd({"tenant": "ten_\x00"}),
    "a long reason": Odd({"finish_reason": "error:" + "e" * 500}),
    "a version with a zero byte": Odd({"adapter_version": "adv\x00"}),
    "the end of time": Odd({"finished_at": 1e300}),
    "no time at all": Odd({"started_at": float("nan"), "finished_at": float("inf")}),
}
# The same on a line that has a hold.
OURS = {
    "the end of time": Odd({"finished_at": 1e300}, "journal_not_bookable"),
    "long ago": Odd({"started_at": -1e300}, "journal_not_bookable"),
    "no time": Odd({"started_at": float("nan")}, "journal_not_bookable"),
    "never": Odd({"finished_at": float("inf")}, "journal_not_bookable"),
    "more than there is": Odd({"usage": Usage(2**62, 0, 2**62, 1)}, "journal_not_bookable"),
}


def change(journal: list[JournalLine], changes: dict[str, Any]) -> None:
    last = journal[-1]
    fields = {name: getattr(last, name) for name in last.__struct_fields__}
    journal[-1] = JournalLine(**{**fields, **changes})


@pytest.mark.parametrize("name", ODD)
def test_what_nobody_here_wrote_is_kept_and_passed(engine: Any, caller: Caller, name: str) -> None:
    pinned = price()
    line(engine, "req_of_somebody_else", caller.tenant.id)
    change(engine.journal, ODD[name].changes)
    good = hold(caller, pinned)
    line(engine, good, caller.tenant.id)
    assert read(engine) == 2
    assert kinds() == [ODD[name].kind]
    assert [event.request_id for event in usage_of(caller)] == [good]
    assert (engine.acknowledged, EngineRecord.objects.count()) == (2, 2)


@pytest.mark.parametrize("name", OURS)
def test_what_cannot_be_booked_of_ours_is_looked_at_and_passed(engine: Any, caller: Caller, name: str) -> None:
    pinned = price()
    odd, good = hold(caller, pinned), hold(caller, pinned)
    line(engine, odd, caller.tenant.id)
    change(engine.journal, OURS[name].changes)
    line(engine, good, caller.tenant.id)
    assert read(engine) == 2
    [found] = Discrepancy.objects.all()
    assert (found.kind, found.request_id) == (OURS[name].kind, odd)
    assert [event.request_id for event in usage_of(caller)] == [good]
