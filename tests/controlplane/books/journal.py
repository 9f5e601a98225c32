"""Lines of an engine's journal, as the tests need them."""

from engine.protocol import JournalLine, Usage
from tests.controlplane.fake_engine import FakeEngine
from tests.controlplane.money import AT, Customer, D


def write(engine: FakeEngine, customer: Customer, request_id: str, **usage: int) -> None:
    """What the engine notes of a request of `customer.usage(request_id)`."""
    used = {"prompt_tokens": 7, "cached_tokens": 2, "completion_tokens": 3, "device_ns": 5_000_000} | usage
    position = engine.journal[-1].position + 1 if engine.journal else 1
    engine.journal.append(
        JournalLine(
            position, request_id, customer.tenant.id, None, Usage(**used), "stop", AT.timestamp() - 1, AT.timestamp()
        )
    )


HOLD = {"amount": D("0.00001"), "tokens": 20}
