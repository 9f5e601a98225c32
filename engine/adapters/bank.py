"""Device slots of adapter weights: what a kernel follows when a token names a slot."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.model_info import ModelInfo
from kernels.adapter_table import AdapterTable


@dataclass(frozen=True, slots=True)
class LoraWeights:
    """One module's update, `scaling * B A`. a: [rank, in], b: [out, rank], any floating dtype."""

    a: Tensor
    b: Tensor
    scaling: float


class LoraBank:
    """`slots` adapters, each at its true ranks, cast to the dtype that the model computes in.

    A slot is written or cleared only while no running sequence names it; the pool sees to that.
    """

    def __init__(self, info: ModelInfo, slots: int, max_rank: int, dtype: torch.dtype, device: str) -> None:
        self.slots, self.max_rank = slots, max_rank
        self.dtype, self.device = dtype, device
        self._tables = {
            (layer, site): _table(info, site, slots, dtype, device)
            for layer in range(info.num_layers)
            for site in info.sites
        }
        self._place = {name: (site, piece) for site in info.sites for piece, name in enumerate(site)}

    def table(self, layer: int, site: tuple[str, ...]) -> AdapterTable:
        return self._tables[layer, site]

    def write(self, slot: int, weights: Mapping[tuple[int, str], LoraWeights]) -> None:
        """Replace what the slot holds. Keys are (layer, module); modules left out are those of the base model."""
        self.clear(slot)
        for (layer, module), lora in weights.items():
            rank = lora.a.shape[0]
            assert module in self._place, f"the model has no module {module}"
            assert rank <= self.max_rank, f"{module} has rank {rank}, over {self.max_rank}"
            site, piece = self._place[module]
            self._tables[layer, site].write(slot, piece, lora.a, lora.b, lora.scaling)

    def clear(self, slot: int) -> None:
        assert 0 <= slot < self.slots, f"slot {slot} of {self.slots}"
        for table in self._tables.values():
            table.clear(slot)

    def slot_bytes(self, slot: int) -> int:
        """Memory that the slot's weights take now."""
        kept = (table.weights.get((slot, piece)) for table in self._tables.values() for piece in range(table.slices))
        return sum(entry[0].nbytes + entry[1].nbytes for entry in kept if entry is not None)


def _table(info: ModelInfo, site: tuple[str, ...], slots: int, dtype: torch.dtype, device: str) -> AdapterTable:
    outs, ins = zip(*(info.modules[name] for name in site), strict=True)
    assert len(set(ins)) == 1, f"{site} do not share an input"
    return AdapterTable(slots, ins[0], tuple(outs), dtype, device)
