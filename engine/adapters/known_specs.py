"""What the check found about bytes that passed it before."""

from collections import OrderedDict
from collections.abc import Callable
from threading import Lock

from engine.adapters.spec import AdapterSpec


class KnownSpecs:
    """Specs by digest, the one used longest ago dropped first: the same bytes pass the same check, so that an adapter
    which comes back from disk is not checked again. `room`: how many; one of a large model takes some 100 kB. Safe with
    threads.
    """

    def __init__(self, room: int = 512) -> None:
        self._room = room
        self._specs: OrderedDict[str, AdapterSpec] = OrderedDict()
        self._lock = Lock()

    def get(self, digest: str, check: Callable[[], AdapterSpec]) -> AdapterSpec:
        """digest: of the very bytes that `check` reads. What `check` raises is passed on, and not remembered."""
        with self._lock:
            if digest in self._specs:
                self._specs.move_to_end(digest)
                return self._specs[digest]
        spec = check()
        with self._lock:
            self._specs[digest] = spec
            if len(self._specs) > self._room:
                self._specs.popitem(last=False)
        return spec
