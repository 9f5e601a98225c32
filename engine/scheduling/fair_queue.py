"""Whose turn it is: waiting sequences by tenant, ordered by the service each tenant has received."""

import heapq
from collections import Counter, OrderedDict
from collections.abc import Container, Iterator
from dataclasses import dataclass, field

from engine.scheduling.sequence import Sequence


@dataclass(slots=True)
class _Tenant:
    virtual_tokens: float
    weight: float
    present: int = 0  # sequences waiting or running
    waiting: OrderedDict[Sequence, None] = field(default_factory=OrderedDict)


class FairQueue:
    """Virtual token counters (Sheng et al., "Fairness in Serving Large Language Models", 2024).

    The tenant with the least counter is next. A tenant of weight 2 is charged half, and so gets twice the service of
    one of weight 1 while both have work; the weight is that of its newest request. A tenant that was away is lifted to
    the least counter of those present, so that idleness earns no credit. Within a tenant: first come, first served.
    """

    def __init__(self) -> None:
        self._tenants: dict[str, _Tenant] = {}
        self._floor = 0.0

    def __len__(self) -> int:
        return sum(len(tenant.waiting) for tenant in self._tenants.values())

    @property
    def tenants(self) -> int:
        """Tenants that wait."""
        return sum(bool(tenant.waiting) for tenant in self._tenants.values())

    @property
    def waiting_by_tenant(self) -> Counter[str]:
        return Counter(sequence.tenant for tenant in self._tenants.values() for sequence in tenant.waiting)

    def waiting_of(self, tenant: str) -> int:
        return len(self._tenants[tenant].waiting) if tenant in self._tenants else 0

    def join(self, sequence: Sequence) -> None:
        """A new sequence waits at the end of its tenant's line."""
        tenant = self._tenants.get(sequence.tenant)
        if tenant is None or not tenant.present:
            self._forget_absent()
            served = tenant.virtual_tokens if tenant else 0.0
            tenant = self._tenants[sequence.tenant] = _Tenant(max(served, self._least()), sequence.weight)
        tenant.weight = sequence.weight
        tenant.present += 1
        tenant.waiting[sequence] = None

    def take(self, sequence: Sequence) -> None:
        """It runs now."""
        del self._tenants[sequence.tenant].waiting[sequence]

    def give_back(self, sequence: Sequence) -> None:
        """It was preempted: it waits again, at the head of its tenant's line."""
        waiting = self._tenants[sequence.tenant].waiting
        waiting[sequence] = None
        waiting.move_to_end(sequence, last=False)

    def leave(self, sequence: Sequence) -> None:
        """It ended, waiting or running."""
        tenant = self._tenants[sequence.tenant]
        self._least()
        tenant.waiting.pop(sequence, None)
        tenant.present -= 1

    def charge(self, sequence: Sequence, virtual_tokens: int) -> None:
        """Count service received by the sequence's tenant."""
        tenant = self._tenants[sequence.tenant]
        tenant.virtual_tokens += virtual_tokens / tenant.weight

    def turns(self, besides: Container[str] = ()) -> Iterator[Sequence]:
        """Waiting sequences in the order of their turn, without those of the tenants `besides`. `take` and `charge`
        between two of them count at once."""
        waiting = {name: tenant.waiting for name, tenant in self._tenants.items() if tenant.waiting}
        lines = {name: iter(list(line)) for name, line in waiting.items() if name not in besides}
        heap = [(self._tenants[name].virtual_tokens, name) for name in lines]
        heapq.heapify(heap)
        while heap:
            served, name = heap[0]
            for sequence in lines[name]:
                yield sequence
                if self._tenants[name].virtual_tokens != served:
                    heapq.heapreplace(heap, (self._tenants[name].virtual_tokens, name))
                    break
            else:
                heapq.heappop(heap)

    def check_integrity(self) -> None:
        for name, tenant in self._tenants.items():
            assert tenant.present >= len(tenant.waiting), name
            assert all(sequence.tenant == name for sequence in tenant.waiting)

    def _least(self) -> float:
        """The least counter among tenants present; it never falls, and stays while nobody is there."""
        present = [tenant.virtual_tokens for tenant in self._tenants.values() if tenant.present]
        self._floor = max(self._floor, min(present, default=self._floor))
        return self._floor

    def _forget_absent(self) -> None:
        """Drop counters that lifting would replace anyway."""
        floor = self._least()
        gone = [name for name, t in self._tenants.items() if not t.present and t.virtual_tokens <= floor]
        for name in gone:
            del self._tenants[name]
