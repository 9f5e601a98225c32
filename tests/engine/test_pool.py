"""Adapter slots: random use against the bank, and each way a load can go wrong."""

import random
import threading
import time
from collections import Counter, deque

import pytest
import torch
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from engine.adapters.bank import LoraBank, LoraWeights
from engine.adapters.host_cache import HostCache, Weights
from engine.adapters.placement import place
from engine.adapters.pool import AdapterPool, AdapterUnavailable
from engine.model_info import ModelInfo
from engine.protocol import AdapterRef, EngineError, Pin, Residency
from tests.engine.toy import ToyBank, toy_adapter, toy_load


def loaded(pool: AdapterPool) -> None:
    while pool.is_loading:
        pool.reserve([])
        time.sleep(0.0005)


class PoolMachine(RuleBasedStateMachine):
    """Whoever holds a slot finds their own adapter in it, for as long as they hold it."""

    @initialize(slots=st.integers(1, 4))
    def open(self, slots: int) -> None:
        self.bank = ToyBank()
        self.pool = AdapterPool(self.bank, slots, toy_load, host_bytes=3)
        self.slots, self.held, self.wanted = slots, list[tuple[int, str]](), list[str]()

    @rule(name=st.sampled_from("abcdef"))
    def acquire(self, name: str) -> None:
        self.pool.reserve(self.wanted)  # each plan begins so
        slot = self.pool.acquire(toy_adapter(name))
        if slot is None:
            # Once more where host memory was full of what came in since: then the load begins with the next plan.
            for _ in range(2):
                loaded(self.pool)
                self.pool.reserve(self.wanted)
                slot = slot if slot is not None else self.pool.acquire(toy_adapter(name))
            busy = {slot for slot, _ in self.held} | {slot.index for slot in self.pool._slots if slot.pinned}
            assert slot is not None or len(busy) == self.slots or self.pool._reserved
        if slot is not None:
            self.held.append((slot, name))

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        slot, _ = self.held.pop(data.draw(st.integers(0, len(self.held) - 1)))
        self.pool.release(slot)

    @rule(names=st.lists(st.sampled_from("abcdef"), max_size=2))
    def reserve(self, names: list[str]) -> None:
        self.wanted = names
        self.pool.reserve(names)

    @rule(name=st.sampled_from("abc"))
    def keep(self, name: str) -> None:
        """Pins never take the last slot."""
        others = len({*self.pool.kept} - {name})
        if others + 1 < self.slots:
            self.pool.keep(toy_adapter(name))
        else:
            with pytest.raises(ValueError, match=f"{others + 1} adapters cannot be pinned to {self.slots} slots"):
                self.pool.keep(toy_adapter(name))

    @rule(name=st.sampled_from("abc"))
    def let_go(self, name: str) -> None:
        self.pool.let_go(name)

    @invariant()
    def holders_find_their_adapter(self) -> None:
        if not hasattr(self, "pool"):
            return
        self.pool.check_integrity()
        users = Counter(slot for slot, _ in self.held)
        assert [self.pool.users(slot) for slot in range(self.slots)] == [users[slot] for slot in range(self.slots)]
        for slot, name in self.held:
            assert self.bank.slots[slot] == name

    def teardown(self) -> None:
        if hasattr(self, "pool"):
            self.pool.close()


TestPool = PoolMachine.TestCase
TestPool.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)


def pool_of(slots: int, load: object = toy_load, **options: int) -> tuple[AdapterPool, ToyBank]:
    bank = ToyBank()
    return AdapterPool(bank, slots, load, **{"host_bytes": 1 << 20, **options}), bank  # type: ignore[arg-type]


def acquired(pool: AdapterPool, name: str) -> int:
    assert pool.acquire(toy_adapter(name)) is None
    loaded(pool)
    slot = pool.acquire(toy_adapter(name))
    assert slot is not None
    return slot


def test_the_slot_idle_longest_is_taken_and_a_used_one_never() -> None:
    pool, bank = pool_of(3)
    slots = {name: acquired(pool, name) for name in "abc"}
    for name in "ca":
        pool.release(slots[name])
    assert acquired(pool, "d") == slots["a"]
    assert acquired(pool, "e") == slots["c"]
    assert pool.acquire(toy_adapter("f")) is None
    loaded(pool)
    assert pool.acquire(toy_adapter("f")) is None
    assert bank.slots == {slots["a"]: "d", slots["b"]: "b", slots["c"]: "e"}


def test_an_evicted_adapter_comes_back_from_host_memory_without_a_load() -> None:
    loads = Counter[str]()

    def counted(adapter: AdapterRef) -> Weights:
        loads[adapter.digest] += 1
        return toy_load(adapter)

    pool, _ = pool_of(1, counted)
    pool.release(acquired(pool, "a"))
    pool.release(acquired(pool, "b"))
    assert pool.acquire(toy_adapter("a")) == 0
    assert loads == {"a": 1, "b": 1}


def test_host_memory_is_bounded_and_keeps_what_is_waited_for() -> None:
    pool, _ = pool_of(1, host_bytes=6)  # a toy adapter has 2 bytes
    for name in "abcdefgh":
        pool.release(acquired(pool, name))
        pool.reserve([])
        pool.reserve([])
        pool.reserve([])
    assert len(pool.in_host_memory) <= 4
    pool.check_integrity()


def test_reserving_drains_the_least_used_slot_for_one_adapter() -> None:
    pool, _ = pool_of(2)
    a, b = acquired(pool, "a"), acquired(pool, "b")
    assert pool.acquire(toy_adapter("a")) == a
    assert pool.acquire(toy_adapter("c")) is None
    loaded(pool)
    pool.reserve(["c"])
    assert pool.acquire(toy_adapter("b")) is None, "its slot is being drained"
    assert pool.acquire(toy_adapter("a")) == a, "the other one serves on"
    pool.release(b)
    assert pool.acquire(toy_adapter("d")) is None
    assert pool.acquire(toy_adapter("c")) == b
    pool.reserve([])
    pool.check_integrity()


@pytest.mark.parametrize("permanent", [True, False])
def test_a_failed_load_is_told_once_and_tried_again_when_asked_again(permanent: bool) -> None:
    broken = True

    def load(adapter: AdapterRef) -> Weights:
        if broken:
            raise AdapterUnavailable("it is broken", permanent=permanent)
        return toy_load(adapter)

    pool, _ = pool_of(1, load)
    pool.prefetch(toy_adapter("a"))
    loaded(pool)
    failures = pool.take_failures()
    assert [(digest, str(error), error.permanent) for digest, error in failures.items()] == [
        ("a", "it is broken", permanent)
    ]
    assert pool.take_failures() == {}
    broken = False
    assert acquired(pool, "a") == 0


def test_a_crash_in_a_loader_is_a_failure_that_may_pass() -> None:
    def load(adapter: AdapterRef) -> Weights:
        raise ZeroDivisionError

    pool, _ = pool_of(1, load)
    pool.prefetch(toy_adapter("a"))
    loaded(pool)
    assert pool.take_failures()["a"].permanent is False


def test_weights_that_the_device_does_not_take_leave_the_slot_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    pool, bank = pool_of(1)

    def full(slot: int, weights: Weights) -> None:
        bank.slots[slot] = "half of it"
        raise MemoryError("no room")

    with monkeypatch.context() as patch:
        patch.setattr(bank, "write", full)
        pool.prefetch(toy_adapter("a"))
        loaded(pool)
        assert pool.acquire(toy_adapter("a")) is None
    assert "no room" in str(pool.take_failures()["a"])
    assert bank.slots == {}
    pool.check_integrity()
    assert acquired(pool, "a") == 0


def test_loads_run_beside_the_step_thread_and_not_all_at_once() -> None:
    gate, running = threading.Event(), Counter[str]()

    def load(adapter: AdapterRef) -> Weights:
        running[adapter.digest] += 1
        gate.wait(10)
        return toy_load(adapter)

    pool, _ = pool_of(4, load)
    for name in "abcd":
        assert pool.acquire(toy_adapter(name)) is None  # returns while the loader is stuck
    assert running.total() <= 2
    gate.set()
    while [name for name in "abcd" if pool.acquire(toy_adapter(name)) is None]:
        pool.reserve([])
        time.sleep(0.0005)
    assert running == dict.fromkeys("abcd", 1)
    pool.check_integrity()


def test_two_thousand_adapters_over_sixty_four_slots() -> None:
    pool, bank = pool_of(64, host_bytes=6 * 256)  # a name of six letters has 12 bytes
    order = [f"a{number:05}" for number in range(2000)]
    random.Random(0).shuffle(order)
    queue, held = deque(order + order[:500]), deque[int]()
    while queue:
        pool.reserve([])
        for name in list(queue)[:4]:  # as the scheduler does: start a few loads, take who is there
            slot = pool.acquire(toy_adapter(name))
            if slot is not None:
                assert bank.slots[slot] == name
                queue.remove(name)
                held.append(slot)
        while len(held) > 48:
            pool.release(held.popleft())
        time.sleep(0)
    pool.check_integrity()
    for slot in held:
        pool.release(slot)
    pool.check_integrity()
    assert [pool.users(slot) for slot in range(64)] == [0] * 64
    assert len(pool.in_slots) == len(bank.slots) == 64
    assert len(pool.in_host_memory) < 200, "host memory is bounded"
    pool.close()


def test_a_pinned_adapter_keeps_its_slot_and_the_others_share_the_rest() -> None:
    pool, bank = pool_of(2)
    pool.pin(toy_adapter("p"))
    pool.pin(toy_adapter("p"))
    for name in "abc":
        pool.release(acquired(pool, name))
    pool.reserve(["a"])
    pool.check_integrity()
    assert sorted(bank.slots.values()) == ["c", "p"]
    slot = pool.acquire(toy_adapter("p"))
    assert slot is not None
    assert bank.slots[slot] == "p"


def test_a_pin_that_cannot_be_says_why() -> None:
    pool, _ = pool_of(2)
    pool.pin(toy_adapter("p"))
    with pytest.raises(ValueError, match="2 adapters cannot be pinned to 2 slots"):
        pool.pin(toy_adapter("q"))
    other, _ = pool_of(2)
    with pytest.raises(AdapterUnavailable, match="it is broken"):
        other.pin(toy_adapter("broken"))
    assert other.in_slots == other.in_host_memory == ()
    other.check_integrity()


def test_a_slot_is_zero_before_the_next_adapter_uses_it() -> None:
    info = ModelInfo("m", 8, 16, 2, 4, 1, 1, 4, {"self_attn.q_proj": (4, 4), "self_attn.v_proj": (4, 4)})
    bank = LoraBank(info, 1, 8, torch.float32, "cpu")

    def lora(rank: int) -> LoraWeights:
        return LoraWeights(torch.ones(rank, 4), torch.ones(4, rank), 2.0)

    loads = {
        "wide": {(layer, name): lora(8) for layer in range(2) for name in info.modules},
        "narrow": {(1, "self_attn.v_proj"): lora(3)},
    }
    pool = AdapterPool(bank, 1, lambda adapter: loads[adapter.digest], 1 << 20)
    pool.release(acquired(pool, "wide"))
    pool.release(acquired(pool, "narrow"))
    ranks = [table.ranks.tolist() for layer in range(2) for site in info.sites for table in [bank.table(layer, site)]]
    scalings = [bank.table(layer, site).scalings.tolist() for layer in range(2) for site in info.sites]
    assert ranks == [[[0, 0]], [[0, 3]]]
    assert scalings == [[[0.0, 0.0]], [[0.0, 2.0]]]
    pool.close()


def test_host_memory_counts_its_bytes() -> None:
    cache = HostCache(8)
    for round_, name in enumerate("abcd"):
        cache.put(name, toy_load(toy_adapter(name * 2)), round_)  # 4 bytes each
        cache.check_integrity()
    assert (cache.digests, cache.bytes) == (("c", "d"), 8)
    assert cache.get("a", 9) is None
    cache.get("c", 9)
    cache.put("e", toy_load(toy_adapter("ee")), 9)
    assert cache.digests == ("c", "e"), "d is the one used longest ago"
    cache.drop("c")
    assert (cache.digests, cache.bytes) == (("e",), 4)
    cache.check_integrity()


def settled(pool: AdapterPool) -> None:
    while pool.is_settling:
        pool.reserve([])
        time.sleep(0.0005)


def test_a_pinned_adapter_stays_whoever_comes_until_it_is_let_go() -> None:
    pool, bank = pool_of(2, host_bytes=1)
    pool.keep(toy_adapter("a"))
    assert pool.tier_of("a") == "loading"
    settled(pool)
    assert (pool.tier_of("a"), pool.kept) == ("slot", ("a",))
    for name in "bcd":
        pool.reserve([])
        pool.release(acquired(pool, name))
        pool.check_integrity()
    assert "a" in bank.slots.values()
    assert pool.acquire(toy_adapter("a")) is not None, "it needs no load"
    pool.let_go("a")
    pool.let_go("a")
    pool.release(next(slot for slot, name in bank.slots.items() if name == "a"))
    for name in "ef":
        pool.reserve([])
        pool.release(acquired(pool, name))
    assert "a" not in bank.slots.values()
    pool.check_integrity()


def test_pins_leave_a_slot_for_the_others_with_those_of_the_start() -> None:
    pool, _ = pool_of(3)
    pool.pin(toy_adapter("start"))
    pool.keep(toy_adapter("start"))  # has its slot already
    pool.keep(toy_adapter("a"))
    with pytest.raises(ValueError, match="3 adapters cannot be pinned to 3 slots: one has to stay free"):
        pool.keep(toy_adapter("b"))
    pool.let_go("start")
    settled(pool)
    pool.check_integrity()
    assert pool.kept == ("a",)
    pool.release(acquired(pool, "c"))
    assert pool.tier_of("start") == "slot", "pinned at the start, so for good"


def test_a_pin_that_cannot_be_loaded_is_dropped() -> None:
    pool, _ = pool_of(2)
    pool.keep(toy_adapter("broken"))
    settled(pool)
    assert pool.kept == ()
    assert list(pool.take_failures()) == ["broken"]
    pool.check_integrity()


def test_a_pin_waits_for_a_slot_that_is_in_use() -> None:
    pool, bank = pool_of(2)
    slots = [acquired(pool, name) for name in "bc"]
    pool.keep(toy_adapter("a"))
    loaded(pool)
    assert (pool.tier_of("a"), pool.is_settling) == ("host", True)
    pool.release(slots[0])
    settled(pool)
    assert bank.slots == {slots[0]: "a", slots[1]: "c"}


def test_what_a_gateway_asks_is_answered_with_where_the_adapter_is() -> None:
    pool, _ = pool_of(2)
    assert place(pool, 8, Pin("c1", toy_adapter("a"), True)) == Residency("c1", "a", "loading", pinned=True)
    settled(pool)
    assert place(pool, 8, Pin("c2", toy_adapter("a"), True)) == Residency("c2", "a", "slot", pinned=True)
    refused = place(pool, 8, Pin("c3", toy_adapter("b"), True))
    assert isinstance(refused, EngineError)
    assert (refused.ref, refused.code, refused.permanent) == ("c3", "too_many_pins", False)
    assert place(pool, 8, Pin("c4", toy_adapter("a"), False)) == Residency("c4", "a", "slot", pinned=False)
    wide = place(pool, 8, Pin("c5", toy_adapter("a", rank=9), True))
    assert isinstance(wide, EngineError)
    assert "9" in wide.message
