"""Parsed adapters in host memory, behind the device's slots: from here a slot is filled without a file being read."""

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass

from engine.adapters.bank import LoraWeights

Weights = Mapping[tuple[int, str], LoraWeights]


@dataclass(slots=True)
class _Copy:
    weights: Weights
    size: int
    asked_in: int


def size_of(weights: Weights) -> int:
    """Bytes of the tensors."""
    return sum(lora.nbytes for lora in weights.values())


class HostCache:
    """Least recently used first out, `capacity` bytes. Rounds count the scheduler's plans: what this or the last
    round asked for stays, also over capacity, or a load could be in vain for ever.
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._copies: OrderedDict[str, _Copy] = OrderedDict()
        self.bytes = 0

    def __len__(self) -> int:
        return len(self._copies)

    def __contains__(self, digest: str) -> bool:
        return digest in self._copies

    @property
    def digests(self) -> tuple[str, ...]:
        """The one used longest ago first."""
        return tuple(self._copies)

    def get(self, digest: str, asked_in: int) -> Weights | None:
        """The weights, marked as used in this round."""
        copy = self._copies.get(digest)
        if copy is None:
            return None
        copy.asked_in = asked_in
        self._copies.move_to_end(digest)
        return copy.weights

    def put(self, digest: str, weights: Weights, asked_in: int) -> None:
        """Keep the weights, and drop what there is no room for any more."""
        assert digest not in self._copies, f"{digest} is there already"
        size = size_of(weights)
        self._copies[digest] = _Copy(weights, size, asked_in)
        self.bytes += size
        self._trim(asked_in)

    def drop(self, digest: str) -> None:
        self.bytes -= self._copies.pop(digest).size

    def has_room(self, asked_in: int) -> bool:
        """Whether another load can be kept: what this round asked for does not fill the capacity alone."""
        return sum(copy.size for copy in self._copies.values() if copy.asked_in == asked_in) < self._capacity

    def check_integrity(self) -> None:
        assert self.bytes == sum(copy.size for copy in self._copies.values())
        assert all(copy.size == size_of(copy.weights) for copy in self._copies.values())

    def _trim(self, asked_in: int) -> None:
        for digest in [digest for digest, copy in self._copies.items() if copy.asked_in < asked_in - 1]:
            if self.bytes <= self._capacity:
                return
            self.drop(digest)
