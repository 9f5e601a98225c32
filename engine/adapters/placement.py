"""What gateways may ask about where adapters are."""

from engine.adapters.pool import AdapterPool
from engine.protocol import EngineError, Event, Pin, Residency


def place(pool: AdapterPool, max_rank: int, asked: Pin) -> Event:
    """Pin or unpin an adapter; where it is now. For the step thread."""
    adapter = asked.adapter
    if not 1 <= adapter.rank <= max_rank:
        message = f"the adapter's rank is {adapter.rank}; this engine serves ranks 1 to {max_rank}"
        return EngineError(asked.call_id, "adapter_unavailable", message, "adapter")
    try:
        if asked.pinned:
            pool.keep(adapter)
        else:
            pool.let_go(adapter.digest)
    except ValueError as error:
        return EngineError(asked.call_id, "too_many_pins", str(error), "adapter", permanent=False)
    return Residency(asked.call_id, adapter.digest, pool.tier_of(adapter.digest), adapter.digest in pool.kept)
