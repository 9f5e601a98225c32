from hypothesis import given
from hypothesis import strategies as st

from engine.protocol import Sampling
from engine.scheduling.fair_queue import FairQueue
from engine.scheduling.sequence import Sequence


def waiting(name: str, tenant: str, weight: float = 1.0) -> Sequence:
    return Sequence(name, tenant, b"", None, Sampling(max_tokens=1), [1], 1, weight=weight)


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


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 50)), min_size=30, max_size=120),
    st.fixed_dictionaries(dict.fromkeys("abc", st.sampled_from([0.5, 1.0, 3.0]))),
)
def test_backlogged_tenants_get_service_by_weight(work: list[tuple[str, int]], weights: dict[str, float]) -> None:
    """The bound of the paper: at no time do two tenants that both have work differ, in service over weight, by more
    than twice the dearest."""
    queue, costs, served = FairQueue(), dict[str, int](), {"a": 0.0, "b": 0.0, "c": 0.0}
    for i, (tenant, cost) in enumerate(work):
        costs[f"{i}"] = cost
        queue.join(waiting(f"{i}", tenant, weights[tenant]))
    while True:
        backlogged = {sequence.tenant for sequence in queue.turns()}
        if backlogged != {"a", "b", "c"}:
            break
        assert max(served.values()) - min(served.values()) <= 2 * 50 / min(weights.values())
        sequence = next(queue.turns())
        serve(queue, costs[sequence.request_id])
        served[sequence.tenant] += costs[sequence.request_id] / weights[sequence.tenant]
        queue.check_integrity()


def test_a_tenant_of_weight_three_gets_three_turns_for_one() -> None:
    queue = FairQueue()
    for i in range(40):
        queue.join(waiting(f"heavy{i}", "heavy", 3.0))
        queue.join(waiting(f"light{i}", "light", 1.0))
    served = [serve(queue, 6).tenant for _ in range(40)]
    assert served.count("heavy") == 30


def test_turns_besides_some_tenants() -> None:
    queue = FairQueue()
    for name in ("a1", "b1", "c1", "b2"):
        queue.join(waiting(name, name[0]))
    assert [s.request_id for s in queue.turns(besides={"a", "c"})] == ["b1", "b2"]
    assert (queue.tenants, queue.waiting_of("b"), queue.waiting_of("nobody")) == (3, 2, 0)


def test_counters_of_absent_tenants_do_not_pile_up() -> None:
    queue = FairQueue()
    for i in range(1000):
        queue.join(waiting(f"{i}", f"tenant{i}"))
        serve(queue, 1 + i % 3)
    assert len(queue._tenants) < 20
