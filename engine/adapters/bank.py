"""Device slots of adapter weights: what a kernel follows when a token names a slot."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.adapters.base_shape import EMBEDDING, HEAD, OUTSIDE
from engine.adapters.base_weights import BaseWeights
from engine.model_info import ModelInfo
from kernels.adapter_table import AdapterTable, Entry
from kernels.embedding_table import EmbeddingTable, EmbeddingUpdate


@dataclass(frozen=True, slots=True)
class LoraWeights:
    """One module's update: y * gain + shift + `scaling * B A` x, where y is the base's output.

    a: [rank, in], b: [out, rank], any floating dtype. gain, shift: float32 [out]; None where they change nothing.
    weight: [vocabulary, hidden] in place of the base's, of embedding and head alone.
    """

    a: Tensor
    b: Tensor
    scaling: float
    gain: Tensor | None = None
    shift: Tensor | None = None
    weight: Tensor | None = None

    @property
    def nbytes(self) -> int:
        return sum(x.nbytes for x in (self.a, self.b, self.gain, self.shift, self.weight) if x is not None)


class AdapterWeights(dict[tuple[int, str], LoraWeights]):
    """An adapter in host memory, by layer (or OUTSIDE) and module.

    invocation: tokens that switch it on; empty: it is always on. entries: what a slot of a bank gets in which tables,
    where `LoraBank.prepare` has put it together beforehand.
    """

    invocation: tuple[int, ...] = ()
    entries: "tuple[tuple[AdapterTable, int, Entry], ...]" = ()


def invocation_of(weights: Mapping[tuple[int, str], LoraWeights]) -> tuple[int, ...]:
    return weights.invocation if isinstance(weights, AdapterWeights) else ()


class LoraBank:
    """`slots` adapters, each at its true ranks, cast to the dtype that the model computes in.

    A slot is written or cleared only while no running sequence names it; the pool sees to that.
    head: the output head's table. heads: whole heads [vocabulary, hidden] by slot. embedding: the embedding's table.
    base: the base model's own weights.
    """

    def __init__(self, info: ModelInfo, slots: int, max_rank: int, dtype: torch.dtype, device: str) -> None:
        self.slots, self.max_rank = slots, max_rank
        self.dtype, self.device = dtype, device
        self.base = BaseWeights()
        self.head = AdapterTable(slots, info.hidden, (info.vocab_size,), dtype, device)
        self.heads: dict[int, Tensor] = {}
        self.embedding = EmbeddingTable(slots, device)
        self._tables = {
            (layer, site): _table(info, site, slots, dtype, device)
            for layer in range(info.num_layers)
            for site in info.sites
        }
        self._place = {name: (site, piece) for site in info.sites for piece, name in enumerate(site)}
        self._written: dict[int, set[AdapterTable]] = {}  # by slot: the tables that hold something of it

    def table(self, layer: int, site: tuple[str, ...]) -> AdapterTable:
        return self._tables[layer, site]

    @property
    def largest_ranks(self) -> tuple[int, ...]:
        """Of each table of a layer, always in the same order; behind them, whether any embedding is adapted."""
        return (*(table.largest_rank for table in self._tables.values()), int(bool(self.embedding.updates)))

    def prepare(self, weights: AdapterWeights) -> None:
        """For any thread: do what of `write` does not depend on the slot. Where slots share host memory, that is
        nearly all; on another device nothing."""
        if self.device == "cpu":
            weights.entries = tuple(self._entries(weights))

    def write(self, slot: int, weights: Mapping[tuple[int, str], LoraWeights]) -> None:
        """Replace what the slot holds. Keys are (layer, module); modules left out are those of the base model.

        Tensors that are ready (`engine.adapters.load.ready_for`) are not copied on the CPU: the slot and host memory
        then share them."""
        self.clear(slot)
        written = self._written[slot] = set[AdapterTable]()
        prepared = weights.entries if isinstance(weights, AdapterWeights) else ()
        for table, piece, entry in prepared or self._entries(weights):
            written.add(table)
            table.put(slot, piece, entry)
        for (layer, module), lora in weights.items():
            if layer == OUTSIDE:
                self._write_end(slot, module, lora)

    def clear(self, slot: int) -> None:
        assert 0 <= slot < self.slots, f"slot {slot} of {self.slots}"
        for table in self._written.pop(slot, ()):
            table.clear(slot)
        self.heads.pop(slot, None)
        self.embedding.clear(slot)

    def slot_bytes(self, slot: int) -> int:
        """Memory that the slot's weights take now."""
        whole = [self.heads.get(slot), self.embedding.updates.get(slot)]
        tables = sum(table.slot_bytes(slot) for table in (self.head, *self._tables.values()))
        return tables + sum(each.nbytes for each in whole if each is not None)

    def _entries(self, weights: Mapping[tuple[int, str], LoraWeights]) -> Iterator[tuple[AdapterTable, int, Entry]]:
        """Of modules in layers, and of the head; an embedding has a table of its own kind."""
        for (layer, module), lora in weights.items():
            rank = lora.a.shape[0]
            assert rank <= self.max_rank, f"{module} has rank {rank}, over {self.max_rank}"
            table, piece = self._table_of(layer, module)
            if table is not None:
                yield table, piece, table.entry(piece, lora.a, lora.b, lora.scaling, lora.gain, lora.shift)

    def _table_of(self, layer: int, module: str) -> tuple[AdapterTable | None, int]:
        if layer == OUTSIDE:
            return self.head if module == HEAD else None, 0
        assert module in self._place, f"the model has no module {module}"
        site, piece = self._place[module]
        return self._tables[layer, site], piece

    def _write_end(self, slot: int, module: str, lora: LoraWeights) -> None:
        weight = None if lora.weight is None else lora.weight.to(self.device, self.dtype).contiguous()
        if module == HEAD:
            if weight is not None:
                self.heads[slot] = weight
            return
        assert module == EMBEDDING, f"the model has no module {module}"
        assert lora.shift is None, "an embedding has no bias"
        a, b = (each.to(self.device, self.dtype).t().contiguous() for each in (lora.a, lora.b))
        gain = None if lora.gain is None else lora.gain.to(self.device, torch.float32)
        self.embedding.write(slot, EmbeddingUpdate(a, b, lora.scaling, gain, weight))


def _table(info: ModelInfo, site: tuple[str, ...], slots: int, dtype: torch.dtype, device: str) -> AdapterTable:
    outs, ins = zip(*(info.modules[name] for name in site), strict=True)
    assert len(set(ins)) == 1, f"{site} do not share an input"
    return AdapterTable(slots, ins[0], tuple(outs), dtype, device)
