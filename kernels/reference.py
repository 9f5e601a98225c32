"""The specification: every op in plain float32 PyTorch, written to be read. Nothing here is meant to be fast."""

import math
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from kernels.embedding_table import EmbeddingUpdate
from kernels.paging import E3M4_MAX, Activation, AttentionRule, PagedBatch, PageStore

GELU = (2 / math.pi) ** 0.5
LARGEST_CODE = {torch.int8: 127.0, torch.float8_e4m3fn: 448.0}


def shrink(x: Tensor, a: Tensor) -> Tensor:
    """x: [tokens, in], a: [rank, in] -> [tokens, rank]."""
    return x.float() @ a.float().T


def expand(h: Tensor, b: Tensor, scaling: float) -> Tensor:
    """h: [tokens, rank], b: [out, rank] -> [tokens, out]; scaled last, in float32."""
    return scaling * (h @ b.float().T)


def lora_delta(
    x: Tensor, slots: list[int | None], adapters: dict[int, list[tuple[Tensor, Tensor, float] | None]], outs: list[int]
) -> Tensor:
    """What a fused linear gains from adapters.

    x: [tokens, in]; slots: per token; adapters: slot -> per slice (A [rank, in], B [out, rank], scaling) or None.
    Returns float32 [tokens, sum(outs)]; zero for tokens of the base model and for slices an adapter leaves alone.
    """
    delta = torch.zeros(x.shape[0], sum(outs))
    for token, slot in enumerate(slots):
        pieces = [] if slot is None else adapters[slot]
        first = 0
        for out, piece in zip(outs, pieces or [None] * len(outs), strict=True):
            if piece is not None:
                a, b, scaling = piece
                delta[token, first : first + out] = expand(shrink(x[token : token + 1], a), b, scaling)[0]
            first += out
    return delta


def quantise(x: Tensor) -> tuple[Tensor, Tensor]:
    """x: [..., head_dim] -> e3m4 codes uint8 [..., head_dim] and float32 scales [...], value = code * scale.

    A code is a sign, 3 bits of exponent (bias 3) and 4 of mantissa, with subnormals and without special values: 0x7f
    is 31. The scale puts the largest magnitude of a head there and carries a NaN; rounding is to nearest even. With a
    scale for each head of each token the range of e4m3 is not needed, and its missing bit of mantissa is: it triples
    what FP8 adds to the perplexity of the demo model (benchmarks/kv_quality.py).
    """
    x = x.float()
    scale = x.abs().amax(-1) / E3M4_MAX
    scaled = torch.where(scale[..., None] > 0, x / scale[..., None], 0.0).clamp(-E3M4_MAX, E3M4_MAX)
    exponent = (torch.frexp(scaled).exponent - 1).clamp(-2, 4)
    step = ((exponent - 4 + 127) << 23).view(torch.float32)
    rounded = torch.round(scaled / step) * step
    # Moved by 124 exponents, an e3m4 number is a float32 whose bits are those of the code.
    bits = (rounded.abs() * 2.0**-124).view(torch.int32) >> 19
    return torch.where(rounded.signbit(), bits | 0x80, bits).to(torch.uint8), scale


def dequantise(codes: Tensor, scale: Tensor) -> Tensor:
    """The inverse of `quantise`, float32."""
    bits = codes.int()
    return ((bits & 0x7F) << 19).view(torch.float32) * 2.0**124 * torch.where(bits > 0x7F, -1.0, 1.0) * scale[..., None]


def store(pages: PageStore, batch: PagedBatch, k: Tensor, v: Tensor) -> None:
    """Write k, v [tokens, kv_heads, head_dim] to the pages of their positions, quantised where the pages are."""
    for token in range(batch.tokens):
        position = int(batch.positions[token])
        page = int(batch.page_table[int(batch.run_of[token]), position // pages.page_size])
        at = position % pages.page_size
        if pages.k_scale is None or pages.v_scale is None:
            pages.k[page, :, :, at], pages.v[page, :, at] = k[token].float(), v[token].float()
            continue
        pages.k[page, :, :, at], pages.k_scale[page, :, at] = quantise(k[token])
        pages.v[page, :, at], pages.v_scale[page, :, at] = quantise(v[token])


def load(pages: PageStore, page_ids: Tensor, length: int) -> tuple[Tensor, Tensor]:
    """The first `length` keys and values of a sequence, float32 [length, kv_heads, head_dim]."""
    ids = page_ids.long()
    k, v = pages.k[ids].permute(0, 3, 1, 2), pages.v[ids].permute(0, 2, 1, 3)
    if pages.k_scale is not None and pages.v_scale is not None:
        k = dequantise(k.contiguous(), pages.k_scale[ids].permute(0, 2, 1))
        v = dequantise(v.contiguous(), pages.v_scale[ids].permute(0, 2, 1))
    return k.flatten(0, 1)[:length].float(), v.flatten(0, 1)[:length].float()


def paged_attention(q: Tensor, pages: PageStore, batch: PagedBatch, rule: AttentionRule) -> Tensor:
    """q: [tokens, q_heads, head_dim] -> float32, same shape. Causal by position; groups of q heads share a K/V head."""
    out = torch.empty(q.shape, dtype=torch.float32)
    group = q.shape[1] // pages.kv_heads
    for token in range(batch.tokens):
        length = int(batch.positions[token]) + 1
        first = max(0, length - rule.window) if rule.window else 0
        row = batch.page_table[int(batch.run_of[token])][: -(-length // pages.page_size)]
        k, v = (x[first:] for x in load(pages, row, length))
        for head in range(q.shape[1]):
            scores = (k[:, head // group] @ q[token, head].float()) * rule.scale
            if rule.cap:
                scores = soft_cap(scores, rule.cap)
            out[token, head] = torch.softmax(scores, 0) @ v[:, head // group]
    return out


def soft_cap(x: Tensor, cap: float) -> Tensor:
    """Nearly x where it is small, never beyond the cap."""
    return cap * torch.tanh(x / cap)


def rope(x: Tensor, rows: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotate x [tokens, heads, head_dim] by the angles of its rows, halves as pairs. cos, sin: [table rows, half].

    Where 2 * half is less than head_dim, the elements behind it stay as they are.
    """
    c, s = cos[rows.long()][:, None], sin[rows.long()][:, None]
    half = cos.shape[1]
    first, second, rest = torch.split(x.float(), [half, half, x.shape[-1] - 2 * half], -1)
    return torch.cat([first * c - second * s, second * c + first * s, rest], -1)


def rms_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """x: [tokens, hidden] -> float32."""
    x = x.float()
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight.float()


def gate(gate_up: Tensor, activation: Activation) -> Tensor:
    """gate_up: [tokens, 2 * ffn], gate first -> float32 [tokens, ffn]."""
    left, up = gate_up.float().chunk(2, -1)
    # GELU's tanh form, x (1 + tanh u) / 2, written without its cancellation where the gate is nearly shut.
    opened = left if activation == "silu" else 2 * GELU * (left + 0.044715 * left**3)
    return left * torch.sigmoid(opened) * up


def to_codes(x: Tensor, kind: torch.dtype) -> tuple[Tensor, Tensor]:
    """x: [rows, n] -> codes [rows, n] of `kind` (int8, float8_e4m3fn) and float32 scales [rows], value = code * scale.

    The largest magnitude of a row has the largest code, 127 or 448; rounding is to nearest even. What is not finite
    makes the scale NaN.
    """
    x, largest = x.float(), LARGEST_CODE[kind]
    scale = x.abs().amax(-1) / largest + (x * 0).sum(-1)
    scaled = torch.where(scale[:, None] > 0, x / scale[:, None], 0.0).clamp(-largest, largest)
    return (scaled.round() if kind is torch.int8 else scaled).to(kind), scale


def coded_linear(x: Tensor, codes: Tensor, scale: Tensor, bias: Tensor | None = None) -> Tensor:
    """x: [tokens, in], codes: [out, in] of one byte, scale: float32 [out] -> float32 [tokens, out].

    Each token is coded like the weights, by a scale of its own, so that a matrix unit multiplies codes with codes.
    """
    ours, size = to_codes(x, codes.dtype)
    sums = (ours.double() @ codes.double().T).float()
    product = sums * size[:, None] * scale
    return product if bias is None else product + bias.float()


def embedding(
    weight: Tensor, tokens: Tensor, slots: Sequence[int | None], updates: Mapping[int, EmbeddingUpdate]
) -> Tensor:
    """Each token's row as its slot has it -> float32 [tokens, hidden]. weight: the base's [vocabulary, hidden]."""
    rows = torch.empty(len(tokens), weight.shape[1])
    for row, (token, slot) in enumerate(zip(tokens.tolist(), slots, strict=True)):
        update = None if slot is None else updates.get(slot)
        if update is None:
            rows[row] = weight[token].float()
            continue
        base = (weight if update.weight is None else update.weight)[token].float()
        base = base if update.gain is None else base * update.gain
        rows[row] = base + expand(update.a[token : token + 1].float(), update.b.T, update.scaling)[0]
    return rows
