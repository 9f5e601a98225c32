"""The next token of each row on a GPU, without a sort: thresholds found digit by digit, then one draw.

    z = (x - max x) / temperature;  kept: the top_k largest, the fewest of them that reach top_p, exp(z) >= min_p
    token: the first, in the order of the vocabulary, where the kept weights add up to more than uniform times their sum

A float32 is a number of 32 bits whose order is the float's. The largest threshold over which enough tokens (top_k), or
enough weight (top_p), remain is found in eight rounds, four bits each, of one pass over the row. Tokens as large as the
last one kept are kept too, so ties do not depend on their order.

No race: a row belongs to one program, which adds in one order.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

BLOCK = 1024


@triton.jit
def _order(x: tl.tensor) -> tl.tensor:
    """int64 of 32 bits that compare as the floats do; the two zeros are one."""
    bits = (x + 0.0).to(tl.int32, bitcast=True).to(tl.int64)
    return tl.where(bits < 0, -1 - bits, bits + 2147483648)


@triton.jit
def _weights(
    row: tl.tensor, start: tl.tensor, vocab: int, best: tl.tensor, cold: tl.tensor, BLOCK: tl.constexpr
) -> tuple[tl.tensor, tl.tensor]:
    """(order of each token, its weight against the best one's), from `start` on. cold: 1 / temperature."""
    at = start + tl.arange(0, BLOCK)
    x = tl.load(row + at, mask=at < vocab, other=float("-inf"))
    return _order(x), tl.where(at < vocab, tl.exp((x - best) * cold), 0.0)


@triton.jit
def _threshold(
    row: tl.tensor, vocab: int, best: tl.tensor, cold: tl.tensor, floor: tl.tensor, enough: tl.tensor,
    COUNTS: tl.constexpr, BLOCK: tl.constexpr,
) -> tl.tensor:  # fmt: skip
    """The largest order over which tokens not below `floor` number, or weigh, at least `enough`."""
    digits = tl.arange(0, 16)
    found = floor * 0
    for round in range(8):
        step = tl.full((), 1, tl.int64) << (28 - 4 * round)
        candidates = found + digits * step
        sums = tl.zeros((16,), tl.float32)
        for start in range(0, vocab, BLOCK):
            order, weight = _weights(row, start, vocab, best, cold, BLOCK)
            if COUNTS:
                weight = tl.where(start + tl.arange(0, BLOCK) < vocab, 1.0, 0.0)
            counted = (order[:, None] >= candidates[None, :]) & (order >= floor)[:, None]
            sums += tl.sum(tl.where(counted, weight[:, None], 0.0), 0)
        # The first candidate always has enough: the rounds before saw to it.
        digit = tl.max(tl.where((sums >= enough) | (digits == 0), digits, 0), 0)
        found += digit * step
    return found


@triton.jit
def sample_kernel(
    logits: tl.tensor, temperatures: tl.tensor, top_ks: tl.tensor, top_ps: tl.tensor, min_ps: tl.tensor,
    uniforms: tl.tensor, tokens: tl.tensor, vocab: int, stride: int, BLOCK: tl.constexpr,
) -> None:  # fmt: skip
    """Grid (rows). tokens: int32; -1 where a row has no finite maximum. A temperature of 0 takes the best."""
    number = tl.program_id(0)
    row = logits + number.to(tl.int64) * stride
    best, choice, broken = float("-inf"), 0, 0.0
    for start in range(0, vocab, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(row + at, mask=at < vocab, other=float("-inf"))
        broken += tl.sum(tl.where((x != x) | (x == float("inf")), 1.0, 0.0), 0)
        here = tl.max(x, 0)
        first = start + tl.argmax(x, 0)
        choice, best = tl.where(here > best, first, choice), tl.maximum(here, best)
    temperature = tl.load(temperatures + number)
    if (broken > 0) | (best == float("-inf")):
        tl.store(tokens + number, -1)
        return
    if temperature == 0:
        tl.store(tokens + number, choice)
        return
    cold = 1.0 / temperature
    floor = _order(best) * 0
    top_k, top_p, min_p = tl.load(top_ks + number), tl.load(top_ps + number), tl.load(min_ps + number)
    if top_k > 0:
        floor = _threshold(row, vocab, best, cold, floor, top_k.to(tl.float32), True, BLOCK)
    if top_p < 1:
        whole = 0.0
        for start in range(0, vocab, BLOCK):
            order, weight = _weights(row, start, vocab, best, cold, BLOCK)
            whole += tl.sum(tl.where(order >= floor, weight, 0.0), 0)
        floor = tl.maximum(floor, _threshold(row, vocab, best, cold, floor, top_p * whole, False, BLOCK))
    total = 0.0
    for start in range(0, vocab, BLOCK):
        order, weight = _weights(row, start, vocab, best, cold, BLOCK)
        total += tl.sum(tl.where((order >= floor) & (weight >= min_p), weight, 0.0), 0)
    target, before, taken = tl.load(uniforms + number) * total, 0.0, -1
    for start in range(0, vocab, BLOCK):
        order, weight = _weights(row, start, vocab, best, cold, BLOCK)
        kept = (order >= floor) & (weight >= min_p) & (weight > 0)
        reached = before + tl.cumsum(tl.where(kept, weight, 0.0), 0)
        at = start + tl.arange(0, BLOCK)
        here = tl.min(tl.where(kept & (reached > target), at, vocab), 0)
        taken = tl.where((taken < 0) & (here < vocab), here, taken)
        before += tl.sum(tl.where(kept, weight, 0.0), 0)
    # Rounding may put the target at the very end: then it is the best one.
    tl.store(tokens + number, tl.where(taken < 0, choice, taken))


def sample_rows(
    logits: Tensor, temperatures: Tensor, top_ks: Tensor, top_ps: Tensor, min_ps: Tensor, uniforms: Tensor
) -> Tensor:
    """logits: float32 [rows, vocab]; the others [rows]: float32, but int32 top_ks. uniforms: in [0, 1).

    temperature 0: the best. top_k 0, top_p 1, min_p 0: off. Returns int32 [rows], -1 where a row has no finite maximum.
    """
    tokens = torch.empty(logits.shape[0], dtype=torch.int32, device=logits.device)
    sample_kernel[(logits.shape[0],)](
        logits, temperatures, top_ks, top_ps, min_ps, uniforms, tokens, logits.shape[1], logits.stride(0), BLOCK=BLOCK,
        num_warps=8,
    )  # fmt: skip
    return tokens
