"""The ops of a decoder layer in vectorised torch: any device, no compiler. The fallback, and the way onto a GPU."""

from collections.abc import Iterator
from itertools import groupby

import torch
from torch import Tensor
from torch.nn import functional

from kernels import reference
from kernels.adapter_table import AdapterTable
from kernels.embedding_table import EmbeddingTable
from kernels.packed import Weight, plain, rows_of
from kernels.paging import Activation, AttentionRule, HeadNorms, PagedBatch, PageStore
from kernels.quantised import Code, Quantised, quantise
from kernels.segments import Segments


class TorchOps:
    """Same contract as `kernels.cpu.ops.CpuOps`; outputs in the dtype of the weights."""

    name = "torch"
    chunk = 64

    def pack(self, weight: Tensor) -> Weight:
        """[out, in] -> the same weight as `linear` reads it fastest. The original is not kept."""
        return weight

    def quantise(self, weight: Tensor, kind: Code) -> Weight:
        """[out, in] -> codes of one byte, with a scale for each output."""
        return quantise(weight, kind)

    def linear(self, x: Tensor, weight: Weight, bias: Tensor | None = None) -> Tensor:
        """x: [tokens, in], weight: [out, in], bias: [out] -> [tokens, out]."""
        if isinstance(weight, Quantised):
            return _coded_linear(x, weight, bias).to(x.dtype)
        return functional.linear(x, plain(weight), bias)

    def add_norm(
        self, residual: Tensor, delta: Tensor | None, weight: Tensor, eps: float, dtype: torch.dtype
    ) -> Tensor:
        """residual (float32 [tokens, hidden]) += delta (in `dtype`), in place; returns its RMS norm in `dtype`."""
        if delta is not None:
            residual += delta.float()
        return reference.rms_norm(residual, weight, eps).to(dtype)

    def norm(self, x: Tensor, weight: Tensor, eps: float) -> Tensor:
        """RMS norm of x [tokens, hidden], in its dtype; weight: float32 [hidden]."""
        return reference.rms_norm(x, weight, eps).to(x.dtype)

    def gate(self, gate_up: Tensor, activation: Activation) -> Tensor:
        """[tokens, 2 * ffn], gate first -> [tokens, ffn]."""
        return reference.gate(gate_up, activation).to(gate_up.dtype)

    def soft_cap(self, x: Tensor, cap: float) -> Tensor:
        """x: float32 [rows, n], changed in place and returned."""
        return x.copy_(reference.soft_cap(x, cap))

    def rope_and_store(
        self, qkv: Tensor, cos: Tensor, sin: Tensor, pages: PageStore, batch: PagedBatch, norms: HeadNorms | None = None
    ) -> Tensor:
        """qkv: [tokens, (q_heads + 2 * kv_heads) * head_dim]. Stores rotated k, and v; returns rotated q, float32.

        cos, sin: [table rows, half]; the first 2 * half elements of a head turn.
        """
        heads = qkv.view(batch.tokens, -1, pages.head_dim)
        kv = pages.kv_heads
        q, k, v = torch.split(heads, [heads.shape[1] - 2 * kv, kv, kv], 1)
        if norms is not None:
            q, k = reference.rms_norm(q, norms.q, norms.eps), reference.rms_norm(k, norms.k, norms.eps)
        q, k = reference.rope(q, batch.angles, cos, sin), reference.rope(k, batch.angles, cos, sin)
        positions = batch.positions.long()
        ids = batch.page_table[batch.run_of.long(), positions // pages.page_size].long()
        _put(pages, ids, positions % pages.page_size, k, v.float())
        return q

    def attention(self, q: Tensor, pages: PageStore, batch: PagedBatch, rule: AttentionRule, out: Tensor) -> Tensor:
        """q: float32 [tokens, q_heads, head_dim]. Fills and returns out [tokens, q_heads * head_dim]."""
        firsts = batch.run_starts.tolist()
        for run in range(batch.runs):
            rows = slice(firsts[run], firsts[run + 1])
            out[rows] = _attend(q[rows], pages, batch.page_table[run], batch.positions[rows], rule)
        return out

    def add_lora(self, y: Tensor, x: Tensor, table: AdapterTable, segments: Segments) -> None:
        """y [tokens, sum(outs)] += scaling * B (A x), for the rows that segments name, after y * gain + shift."""
        chunks = zip(segments.slots.tolist(), segments.starts.tolist(), segments.lengths.tolist(), strict=True)
        for slot, start, length in chunks:
            rows = segments.order[start : start + length].long()
            first = 0
            for piece, out in enumerate(table.outs):
                entry = table.weights.get((slot, piece))
                if entry is not None:
                    a, b, scaling = entry
                    gain, shift = table.columns.get((slot, piece), (None, None))
                    delta = scaling * (x[rows].float() @ a.float().T @ b.float())
                    base = y[rows, first : first + out].float()
                    base = base if gain is None else base * gain
                    base = base if shift is None else base + shift
                    y[rows, first : first + out] = (base + delta).to(y.dtype)
                first += out

    def embed(self, rows: Tensor, tokens: Tensor, weight: Weight, table: EmbeddingTable, segments: Segments) -> None:
        """Write rows (float32 [tokens, hidden]) anew where the token's slot has changed the embedding.

        tokens: [tokens]; weight: the base's [vocabulary, hidden].
        """
        for slot, places in _places(segments):
            update = table.updates.get(slot)
            if update is None:
                continue
            ids = tokens[places]
            base = rows_of(weight if update.weight is None else update.weight, ids).float()
            base = base if update.gain is None else base * update.gain
            rows[places] = base + update.scaling * (update.a[ids].float() @ update.b.float())


def _coded_linear(x: Tensor, weight: Quantised, bias: Tensor | None) -> Tensor:
    """`kernels.reference.coded_linear`, with sums in float32."""
    codes, size = reference.to_codes(x, weight.codes.dtype)
    product = codes.float() @ weight.codes.float().T * size[:, None] * weight.scale
    return product if bias is None else product + bias.float()


def _places(segments: Segments) -> Iterator[tuple[int, Tensor]]:
    """Each slot and the rows of its tokens; its chunks follow each other."""
    starts, lengths = segments.starts.tolist(), segments.lengths.tolist()
    for slot, chunks in groupby(range(segments.chunks), segments.slots.tolist().__getitem__):
        numbers = list(chunks)
        end = starts[numbers[-1]] + lengths[numbers[-1]]
        yield slot, segments.order[starts[numbers[0]] : end].long()


def _put(pages: PageStore, ids: Tensor, at: Tensor, k: Tensor, v: Tensor) -> None:
    if pages.k_scale is None or pages.v_scale is None:
        pages.k[ids, :, :, at], pages.v[ids, :, at] = k.to(pages.k.dtype), v.to(pages.v.dtype)
        return
    pages.k[ids, :, :, at], pages.k_scale[ids, :, at] = reference.quantise(k)
    pages.v[ids, :, at], pages.v_scale[ids, :, at] = reference.quantise(v)


def _attend(q: Tensor, pages: PageStore, row: Tensor, positions: Tensor, rule: AttentionRule) -> Tensor:
    size, length = pages.page_size, int(positions[-1]) + 1
    # Pages behind the window may be anybody's by now, and what is not finite in them would survive a weight of zero.
    behind = 0 if rule.window is None else max(0, int(positions[0]) + 1 - rule.window) // size
    k, v = reference.load(pages, row[behind : -(-length // size)], length - behind * size)
    grouped = q.reshape(q.shape[0], pages.kv_heads, -1, pages.head_dim)
    scores = torch.einsum("thgd,khd->hgtk", grouped, k) * rule.scale
    if rule.cap is not None:
        scores = reference.soft_cap(scores, rule.cap)
    distance = positions[:, None] - torch.arange(behind * size, length, device=q.device)[None]
    hidden = distance < 0 if rule.window is None else (distance < 0) | (distance >= rule.window)
    weights = scores.masked_fill(hidden, float("-inf")).softmax(-1)
    return torch.einsum("hgtk,khd->thgd", weights, v).flatten(1)
