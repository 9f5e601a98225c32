"""When too many wait: who is sent away, and when it is worth coming back."""

import math
from collections import deque
from dataclasses import dataclass

from engine.protocol import EngineError, Generate

# Ended requests that the measure looks back over.
LOOK_BACK = 64
MIN_RETRY_SECONDS, MAX_RETRY_SECONDS = 1, 600


class ServiceRate:
    """Engine time per request, over those that ended last. Time without work does not count."""

    def __init__(self) -> None:
        self._worked_ns = 0
        self._ends = deque([0], maxlen=LOOK_BACK + 1)

    def worked(self, step_ns: int) -> None:
        self._worked_ns += step_ns

    def served(self) -> None:
        """One more request has run and ended."""
        self._ends.append(self._worked_ns)

    def seconds_for(self, requests: int) -> float:
        """How long this many will take; before any has ended, each is taken to need all the time spent so far."""
        per_request = (self._worked_ns - self._ends[0]) / max(len(self._ends) - 1, 1)
        return requests * per_request / 1e9


@dataclass(frozen=True, slots=True)
class Line:
    """Sequences that wait: of all tenants, and of the one that asks. tenants: how many of them wait."""

    total: int
    own: int
    tenants: int


@dataclass(frozen=True, slots=True)
class Shedding:
    """max_waiting, max_waiting_per_tenant: sequences that may wait at once."""

    max_waiting: int
    max_waiting_per_tenant: int

    def refusal(self, request: Generate, line: Line, rate: ServiceRate) -> EngineError | None:
        """Too many wait, of this tenant or in all: come back when those have been served. None: there is room."""
        if line.own >= self.max_waiting_per_tenant:
            message = f"{line.own} requests of this tenant are waiting already"
            return _later(request, "tenant_overloaded", message, rate.seconds_for(line.own * line.tenants))
        if line.total >= self.max_waiting:
            message = f"{line.total} requests are waiting already"
            return _later(request, "engine_overloaded", message, rate.seconds_for(line.total))
        return None


def _later(request: Generate, code: str, message: str, seconds: float) -> EngineError:
    after = min(max(math.ceil(seconds), MIN_RETRY_SECONDS), MAX_RETRY_SECONDS)
    message = f"{message}: try again in {after} s"
    return EngineError(request.request_id, code, message, permanent=False, retry_after_s=float(after))
