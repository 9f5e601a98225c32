from hypothesis import given
from hypothesis import strategies as st

from engine.protocol import Sampling
from engine.scheduling.fair_queue import FairQueue
from engine.scheduling.sequence import Sequence


def waiting(name: str, tenant: str) -> Sequence:
    return Sequence(name, tenant, b"", None, Sampling(max_tokens=1), [1], 1)


def names(queue: FairQueue) -> list[str]:
    return [sequence.request_id for sequence in queue.turns()]


def serve(queue: FairQueue, cost: int) -> Sequence:
    sequence = next(queue.turns())
    queue.take(sequence)
    queue.charge(sequence, cost)
    queue.leave(sequence)
    return sequence


def test_one_tenant_is_first_come_first_served_and_a_preempted_one_goes_first() -> None:
    queue = FairQueue()
    first, second = waiting("1", "a"), waiting("2", "a")
    queue.join(first)
    queue.join(second)
    assert names(queue) == ["1", "2"]
    queue.take(first)
    queue.give_back(first)
    assert names(queue) == ["1", "2"]


def test_charging_between_two_turns_lets_the_other_tenant_in() -> None:
    queue = FairQueue()
    for name in ("a1", "a2", "b1", "b2"):
        queue.join(waiting(name, name[0]))
    order = []
    for sequence in queue.turns():
        order.append(sequence.request_id)
        queue.take(sequence)
        queue.charge(sequence, 10)
    assert order == ["a1", "b1", "a2", "b2"]


def test_idleness_earns_no_credit() -> None:
    queue = FairQueue()
    for i in range(10):
        queue.join(waiting(f"busy{i}", "busy"))
    for _ in range(4):
        serve(queue, 100)
    for i in range(3):
        queue.join(waiting(f"back{i}", "back"))
    served = [serve(queue, 100).tenant for _ in range(6)]
    assert sorted(served) == ["back"] * 3 + ["busy"] * 3


def test_leaving_and_coming_back_does_not_wash_off_what_was_served() -> None:
    queue = FairQueue()
    queue.join(waiting("greedy0", "greedy"))
    for i in range(5):
        queue.join(waiting(f"modest{i}", "modest"))
    order = []
    for i in range(6):
        sequence = serve(queue, 40 if next(queue.turns()).tenant == "greedy" else 10)
        order.append(sequence.tenant)
        if sequence.tenant == "greedy":
            queue.join(waiting(f"greedy{i + 1}", "greedy"))
    assert order == ["greedy", "modest", "modest", "modest", "modest", "greedy"]


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 50)), min_size=30, max_size=120))
def test_backlogged_tenants_get_equal_service(work: list[tuple[str, int]]) -> None:
    """The bound of the paper: at no time do two tenants that both have work differ by more than twice the dearest."""
    queue, costs, served = FairQueue(), dict[str, int](), {"a": 0, "b": 0, "c": 0}
    for i, (tenant, cost) in enumerate(work):
        costs[f"{i}"] = cost
        queue.join(waiting(f"{i}", tenant))
    while True:
        backlogged = {sequence.tenant for sequence in queue.turns()}
        if backlogged != {"a", "b", "c"}:
            break
        assert max(served.values()) - min(served.values()) <= 2 * 50
        sequence = next(queue.turns())
        serve(queue, costs[sequence.request_id])
        served[sequence.tenant] += costs[sequence.request_id]
        queue.check_integrity()


def test_counters_of_absent_tenants_do_not_pile_up() -> None:
    queue = FairQueue()
    for i in range(1000):
        queue.join(waiting(f"{i}", f"tenant{i}"))
        serve(queue, 1 + i % 3)
    assert len(queue._tenants) < 20
