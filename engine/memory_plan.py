"""How a device's memory is shared out at start: weights, slots, graphs and activations first; the rest is pages."""

from dataclasses import dataclass

from engine.model_info import ModelInfo
from engine.sizes import shown_bytes

MARGIN = 0.03  # of the device: what allocators lose between blocks, and other processes' small change


class MemoryPlanError(ValueError):
    """The model does not fit; the message has the arithmetic and the remedies."""


@dataclass(frozen=True, kw_only=True)
class MemoryUse:
    """Bytes. total: of the device. others: of it, in use by other processes. weights: of the base model, as loaded.
    slots: adapter slots, all at the largest rank. graphs: of captured steps. activations: the peak of the largest step.
    """

    total: int
    others: int
    weights: int
    slots: int
    graphs: int
    activations: int

    @property
    def margin(self) -> int:
        return int(self.total * MARGIN)

    @property
    def left(self) -> int:
        """Negative where it does not fit."""
        taken = self.others + self.weights + self.slots + self.graphs + self.activations + self.margin
        return self.total - taken


def plan_pages(use: MemoryUse, *, page_size: int, bytes_per_token: int, least_tokens: int) -> int:
    """Pages for all that is left. Raises MemoryPlanError where they would not hold `least_tokens`."""
    page = page_size * bytes_per_token
    pages = max(use.left, 0) // page
    if pages * page_size < least_tokens:
        need = -(-least_tokens // page_size) * page
        raise MemoryPlanError(
            f"{arithmetic(use)} leaves {shown_bytes(max(use.left, 0))} for keys and values, and {least_tokens} tokens "
            f"of {bytes_per_token} B take {shown_bytes(need)}: use fewer --adapter-slots, a lower --max-rank, smaller "
            "--step-tokens, --weights fp8 or int8, --kv fp8, or a larger device"
        )
    return pages


def arithmetic(use: MemoryUse) -> str:
    parts = (
        ("other processes", use.others),
        ("weights", use.weights),
        ("adapter slots", use.slots),
        ("graphs", use.graphs),
        ("activations", use.activations),
        ("margin", use.margin),
    )
    return f"{shown_bytes(use.total)} of memory" + "".join(f" - {shown_bytes(n)} {name}" for name, n in parts if n)


def slot_bytes(info: ModelInfo, rank: int, bytes_per_weight: int) -> int:
    """One adapter of this rank on every linear of every layer."""
    sides = sum(out + inside for out, inside in info.modules.values())
    return info.num_layers * rank * sides * bytes_per_weight
