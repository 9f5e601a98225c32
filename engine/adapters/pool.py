"""Adapter slots of the device: acquire, release, evict. Loading happens behind the step loop's back."""

import logging
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import count
from typing import Literal, Protocol

from engine.adapters.bank import invocation_of
from engine.adapters.host_cache import HostCache, Weights
from engine.protocol import AdapterRef

log = logging.getLogger(__name__)

Tier = Literal["slot", "host", "loading", "none"]

LOADERS = 2
# Loads under way or next in line for a loader, so that loaders have work throughout a step.
MAX_LOADING = 8
# One slot in so many may be drained at a time, and always one.
DRAINED_SHARE = 4


class AdapterUnavailable(Exception):
    """The adapter cannot be served. permanent: loading it again would end the same way."""

    def __init__(self, message: str, *, permanent: bool) -> None:
        super().__init__(message)
        self.permanent = permanent


class Bank(Protocol):
    """What the pool asks of `engine.adapters.bank.LoraBank`."""

    def write(self, slot: int, weights: Weights) -> None: ...
    def clear(self, slot: int) -> None: ...


@dataclass(slots=True)
class _Slot:
    index: int
    digest: str | None = None
    users: int = 0
    last_used: int = 0
    pinned: bool = False
    invocation: tuple[int, ...] = ()

    def takes(self, digest: str) -> bool:
        """Whether it may be emptied for this adapter."""
        return not self.users and (not self.pinned or self.digest == digest)


class AdapterPool:
    """An adapter is its content digest. It is in a slot, in host memory, on its way, or nowhere.

    All methods belong to the step thread; only `load` runs elsewhere. A slot is written inside `acquire`, which the
    scheduler calls between steps, so that what a step reads never changes under it. host_bytes: host memory for the
    weights of adapters that are in no slot, or may have to come back to one. kept: digests that `keep` pinned, for any
    thread to read. on_disk: digests whose files `load` has
    at hand.
    """

    def __init__(
        self,
        bank: Bank,
        slots: int,
        load: Callable[[AdapterRef], Weights],
        host_bytes: int,
        on_disk: Callable[[], tuple[str, ...]] = tuple,
    ) -> None:
        self._bank, self._load, self._on_disk = bank, load, on_disk
        self._slots = [_Slot(index) for index in range(slots)]
        self._slot_of: dict[str, _Slot] = {}
        self._idle = slots  # that nobody uses and no pin holds
        self._reserved: dict[int, str] = {}
        self._host = HostCache(host_bytes)
        self._loading: dict[str, Future[Weights]] = {}
        self._failures: dict[str, AdapterUnavailable] = {}
        self._fixed: set[str] = set()  # pinned at the start, for good
        self._kept: dict[str, AdapterRef] = {}  # pinned while running
        self.kept: tuple[str, ...] = ()
        self._loaders = ThreadPoolExecutor(LOADERS, thread_name_prefix="adapter-load")
        self._clock = count(1)
        self._round = 0

    @property
    def is_loading(self) -> bool:
        return bool(self._loading)

    def prefetch(self, adapter: AdapterRef) -> None:
        """Start the load unless the weights are here, on their way, or host memory is full of others that wait."""
        digest = adapter.digest
        if digest in self._slot_of or digest in self._host or digest in self._loading:
            return
        if len(self._loading) < MAX_LOADING and self._host.has_room(self._round):
            self._loading[digest] = self._loaders.submit(self._load, adapter)

    def pin(self, adapter: AdapterRef) -> None:
        """Load the adapter now and keep it in a slot for good. For the start: it waits for the load.

        Raises AdapterUnavailable; ValueError where no slot would be left for the others.
        """
        self._check_room(adapter.digest)
        if adapter.digest not in self._slot_of and adapter.digest not in self._host:
            self._host.put(adapter.digest, self._load(adapter), self._round)
        slot = self._slot_of.get(adapter.digest) or self._fill(adapter)
        if slot is None:
            raise self._failures.pop(adapter.digest)
        self._nail(slot)
        self._fixed.add(adapter.digest)

    def keep(self, adapter: AdapterRef) -> None:
        """Pin the adapter while the engine runs: it is loaded, gets a slot as soon as one is idle, and stays there.

        Raises ValueError where no slot would be left for the others. A pin whose load fails is dropped.
        """
        if adapter.digest not in self._kept:
            self._check_room(adapter.digest)
            self._kept[adapter.digest] = adapter
            self.kept = tuple(self._kept)
        self._settle()

    def let_go(self, digest: str) -> None:
        """Its pin ends, if it has one; one of the start does not."""
        if self._kept.pop(digest, None) is None:
            return
        self.kept = tuple(self._kept)
        slot = self._slot_of.get(digest)
        if slot is not None and slot.pinned and digest not in self._fixed:
            slot.pinned = False
            self._idle += not slot.users

    @property
    def is_settling(self) -> bool:
        """Some pin has no slot yet."""
        return not all(digest in self._slot_of and self._slot_of[digest].pinned for digest in self._kept)

    def tier_of(self, digest: str) -> Tier:
        if digest in self._slot_of:
            return "slot"
        return "host" if digest in self._host else "loading" if digest in self._loading else "none"

    def acquire(self, adapter: AdapterRef) -> int | None:
        """The adapter's slot, counted as used once more. None: not now (it loads, or every slot is in use).

        What the loaders have finished is taken over by `reserve`, once a plan.
        """
        slot = self._slot_of.get(adapter.digest) or self._fill(adapter)
        if slot is None or self._reserved.get(slot.index, adapter.digest) != adapter.digest:
            return None
        self._idle -= not (slot.users or slot.pinned)
        slot.users += 1
        slot.last_used = next(self._clock)
        return slot.index

    def release(self, slot: int) -> None:
        assert self._slots[slot].users > 0, f"slot {slot} released more often than acquired"
        self._slots[slot].users -= 1
        self._idle += not (self._slots[slot].users or self._slots[slot].pinned)

    def reserve(self, digests: list[str]) -> None:
        """Drain a slot for each of the first of these adapters: nobody else may acquire it. Replaces the last
        reservation.

        The slot with the fewest users is drained; being drained, its users only get fewer, so it does become idle.
        Most slots go on serving meanwhile.
        """
        self._collect()
        self._round += 1
        self._settle()
        self._reserved = {}
        for digest in digests:
            if len(self._reserved) * DRAINED_SHARE >= len(self._slots):
                return
            if digest not in self._host or digest in self._slot_of:
                continue
            rest = [slot for slot in self._slots if slot.index not in self._reserved and not slot.pinned]
            if not rest:
                return
            chosen = min(rest, key=lambda slot: (slot.users, slot.index))
            self._reserved[chosen.index] = digest

    def take_failures(self) -> dict[str, AdapterUnavailable]:
        """Loads that failed since the last call, by digest. A later request for the same adapter tries again."""
        self._collect()
        failures, self._failures = self._failures, {}
        return failures

    def close(self) -> None:
        self._loaders.shutdown(wait=False, cancel_futures=True)

    def check_integrity(self) -> None:
        held = {slot.digest: slot for slot in self._slots if slot.digest is not None}
        assert held == self._slot_of
        assert sum(slot.pinned for slot in self._slots) < len(self._slots)
        nailed = {slot.digest for slot in self._slots if slot.pinned}
        assert self._fixed <= nailed <= self._fixed | self._kept.keys()
        assert len(self._fixed | self._kept.keys()) < len(self._slots) or not nailed
        assert self.kept == tuple(self._kept)
        self._host.check_integrity()
        assert all(slot.users >= 0 for slot in self._slots)
        assert self._idle == sum(not (slot.users or slot.pinned) for slot in self._slots)
        assert all(slot.digest is not None for slot in self._slots if slot.users)
        assert not self._loading.keys() & {*self._host.digests, *self._slot_of}

    def invocation(self, slot: int) -> tuple[int, ...]:
        """Tokens that switch the slot's adapter on; empty: it is always on."""
        return self._slots[slot].invocation

    def users(self, slot: int) -> int:
        return self._slots[slot].users

    @property
    def in_slots(self) -> tuple[str, ...]:
        """Digests, used now or not."""
        return tuple(self._slot_of)

    @property
    def in_host_memory(self) -> tuple[str, ...]:
        return self._host.digests

    @property
    def tiers(self) -> dict[str, tuple[str, ...]]:
        """Digests by where they are; one may be in several."""
        return {"slot": self.in_slots, "host": self.in_host_memory, "disk": self._on_disk()}

    @property
    def slots(self) -> int:
        return len(self._slots)

    @property
    def slots_in_use(self) -> int:
        return sum(slot.users > 0 for slot in self._slots)

    def _check_room(self, digest: str) -> None:
        count = len((self._fixed | self._kept.keys()) - {digest}) + 1
        if count >= len(self._slots):
            message = f"{count} adapters cannot be pinned to {len(self._slots)} slots: one has to stay free"
            raise ValueError(f"{message}; pin fewer, or raise adapter_slots")

    def _settle(self) -> None:
        """Slots for the pins that have none."""
        for digest, adapter in list(self._kept.items()):
            slot = self._slot_of.get(digest) or self._fill(adapter)
            if slot is not None:
                self._nail(slot)

    def _nail(self, slot: _Slot) -> None:
        self._idle -= not (slot.users or slot.pinned)
        slot.pinned = True

    def _fill(self, adapter: AdapterRef) -> _Slot | None:
        """Write the adapter into an idle slot: an empty one, else the one that was idle longest."""
        digest = adapter.digest
        weights = self._host.get(digest, self._round)
        if weights is None:
            self.prefetch(adapter)
            return None
        if not self._idle:  # the usual case under load, and thousands may ask in one plan
            return None
        idle = [s for s in self._slots if s.takes(digest) and self._reserved.get(s.index, digest) == digest]
        if not idle:
            return None
        slot = min(idle, key=lambda s: (s.digest is not None, s.last_used))
        self._empty(slot)
        try:
            self._bank.write(slot.index, weights)
        except Exception as error:  # whatever the device says, it is this adapter's trouble and nobody else's
            self._bank.clear(slot.index)
            self._host.drop(digest)
            self._fail(digest, AdapterUnavailable(f"its weights do not fit the device: {error}", permanent=False))
            return None
        slot.digest, slot.invocation = digest, invocation_of(weights)
        self._slot_of[digest] = slot
        return slot

    def _empty(self, slot: _Slot) -> None:
        if slot.digest is not None:
            self._bank.clear(slot.index)
            del self._slot_of[slot.digest]
            slot.digest = None

    def _collect(self) -> None:
        """Take over what the loaders have finished."""
        for digest in [digest for digest, future in self._loading.items() if future.done()]:
            future = self._loading.pop(digest)
            error = future.exception()
            if error is None:
                self._host.put(digest, future.result(), self._round)
            elif isinstance(error, AdapterUnavailable):
                self._fail(digest, error)
            else:
                message = f"loading it failed: {type(error).__name__}: {error}"
                self._fail(digest, AdapterUnavailable(message, permanent=False))

    def _fail(self, digest: str, error: AdapterUnavailable) -> None:
        self._failures[digest] = error
        if digest in self._kept:
            log.warning("a pin is dropped: %s", error, extra={"adapter": self._kept[digest].version})
            self.let_go(digest)
