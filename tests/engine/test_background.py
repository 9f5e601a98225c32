"""A tenant's background work has a turn of its own: it holds up nobody's requests, the tenant's own included."""

from pathlib import Path

import msgspec

from tests.engine.driver import Answers, drive, request
from tests.engine.toy import greedy, toy_engine

LONG = msgspec.structs.replace(greedy(6), ignore_eos=True)


def order_of_ends(home: Path, *, background: bool) -> list[str]:
    """Who ended when: six requests wait, then the same tenant asks two more; one runs at a time."""
    home.mkdir()
    toy, answers = toy_engine(home, max_running=1), Answers()
    for i in range(6):
        more = {"tenant_weight": 0.1, "background": True} if background else {}
        assert toy.engine.add(request(f"batch-{i}", [5, 6, 7], LONG, **more)) is None
    answers.take(toy.engine.step())
    for i in range(2):
        assert toy.engine.add(request(f"own-{i}", [5, 6, 7], LONG)) is None
    drive(toy, answers)
    lines = toy.journal.read(0, 100)
    assert {line.tenant for line in lines} == {"acme"}, "who is charged is the tenant, whatever the turn"
    return [line.request_id for line in lines]


def test_own_requests_go_before_background_work(tmp_path: Path) -> None:
    order = order_of_ends(tmp_path / "with", background=True)
    assert order[0] == "batch-0"
    assert max(order.index("own-0"), order.index("own-1")) <= 3
    assert order_of_ends(tmp_path / "without", background=False)[-2:] == ["own-0", "own-1"]
