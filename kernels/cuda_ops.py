"""The ops of a decoder layer on a CUDA device: torch's GEMM, all else in Triton."""

import torch
from torch import Tensor

from kernels import attention, coded_linear, embedding, kv_store, layer_ops, lora
from kernels.adapter_table import AdapterTable
from kernels.embedding_table import EmbeddingTable
from kernels.lora_tiles import MOST_ROWS, LoraWork, Table, choose_tiles, read_table
from kernels.packed import Weight
from kernels.paging import Activation, AttentionRule, HeadNorms, PagedBatch, PageStore
from kernels.quantised import Code, Quantised
from kernels.segments import Segments
from kernels.torch_ops import TorchOps


class CudaOps(TorchOps):
    """GEMMs over weights of 16 and 32 bits are torch's. Tensors are contiguous.

    interpreted: run by Triton's interpreter on the CPU, which multiplies no bf16 by itself.
    """

    name = "cuda"
    chunk = MOST_ROWS

    def __init__(self, *, interpreted: bool = False) -> None:
        self._interpreted = interpreted
        self._capability, self._multiprocessors = 0, 1
        self._tuned: Table = {}
        self._multiplies_e4m3 = True
        if not interpreted:
            device = torch.cuda.get_device_properties()
            self._capability, self._multiprocessors = device.major, device.multi_processor_count
            self._tuned = read_table(device.name)
            self._multiplies_e4m3 = (device.major, device.minor) >= (8, 9)

    def quantise(self, weight: Tensor, kind: Code) -> Weight:
        """Raises ValueError where the device has no unit for such codes."""
        if kind == "fp8" and not self._multiplies_e4m3:
            raise ValueError("weights are fp8, which takes compute capability 8.9 or higher: use --weights int8 here")
        return super().quantise(weight, kind)

    def linear(self, x: Tensor, weight: Weight, bias: Tensor | None = None) -> Tensor:
        if isinstance(weight, Quantised):
            return coded_linear.coded_linear(x, weight, bias, rounds=self._interpreted)
        return super().linear(x, weight, bias)

    def embed(self, rows: Tensor, tokens: Tensor, weight: Weight, table: EmbeddingTable, segments: Segments) -> None:
        assert isinstance(weight, Tensor), "embeddings are kept as they are"
        embedding.embed(rows, tokens, weight, table, segments, upcast=self._interpreted)

    def add_norm(
        self, residual: Tensor, delta: Tensor | None, weight: Tensor, eps: float, dtype: torch.dtype
    ) -> Tensor:
        return layer_ops.add_norm(residual, delta, weight, eps, dtype)

    def norm(self, x: Tensor, weight: Tensor, eps: float) -> Tensor:
        return layer_ops.norm(x, weight, eps)

    def gate(self, gate_up: Tensor, activation: Activation) -> Tensor:
        return layer_ops.gate(gate_up, activation)

    def soft_cap(self, x: Tensor, cap: float) -> Tensor:
        return layer_ops.soft_cap(x, cap)

    def rope_and_store(
        self, qkv: Tensor, cos: Tensor, sin: Tensor, pages: PageStore, batch: PagedBatch, norms: HeadNorms | None = None
    ) -> Tensor:
        return kv_store.rope_and_store(qkv, cos, sin, pages, batch, norms)

    def attention(self, q: Tensor, pages: PageStore, batch: PagedBatch, rule: AttentionRule, out: Tensor) -> Tensor:
        return attention.paged_attention(
            q, pages, batch, rule, out, capability=self._capability, upcast=self._interpreted
        )

    def add_lora(self, y: Tensor, x: Tensor, table: AdapterTable, segments: Segments) -> None:
        tokens = segments.order.shape[0]
        rows = lora.rows_of_chunk(segments.longest)
        work = LoraWork(tokens, segments.chunks, rows, table.slices, table.largest_rank, table.in_features)
        tiles = choose_tiles(work, self._multiprocessors, self._tuned)
        lora.add_lora(y, x, table, segments, tiles, upcast=self._interpreted)
