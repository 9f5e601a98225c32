"""The next token of every sequence, from logits.

A row's draw depends on its own logits, its sampling parameters, its seed, its position and, where it is shaped, the
tokens before it; on nothing else: not on the rows beside it, not on how the prompt was cut into chunks.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
import torch
from torch import Tensor

from engine.decoding.shaping import Shape
from engine.protocol import Sampling

# Below this, dividing by the temperature would overflow: the limit is greedy.
MIN_TEMPERATURE = 1e-4
# top_p looks at this many best tokens first; a flatter distribution is sorted in full.
TOP_P_WINDOW = 1024


@dataclass(frozen=True, slots=True)
class Draw:
    """How to choose one row's token. position: index of the token in its sequence. shape: what changes the logits
    first; None: nothing."""

    sampling: Sampling
    seed: int
    position: int
    shape: Shape | None = None

    @property
    def is_greedy(self) -> bool:
        return self.sampling.temperature < MIN_TEMPERATURE or self.sampling.top_k == 1

    @property
    def uniform(self) -> float:
        """In [0, 1), of 53 bits, from (seed, position) alone."""
        digest = blake2b(f"{self.seed}:{self.position}".encode(), digest_size=8).digest()
        return (int.from_bytes(digest, "big") >> 11) / (1 << 53)


def stream_seed(seed: int, index: int) -> int:
    """The seed that choice `index` of a request draws with; the first one has the request's own."""
    if index == 0:
        return seed
    return int.from_bytes(blake2b(f"{seed}/{index}".encode(), digest_size=8).digest(), "big") >> 1


def sample(logits: Tensor, draws: Sequence[Draw]) -> list[int | None]:
    """logits: float32 [n, vocab], draws: n. Returns the token of each row; None where a row has no finite maximum
    (NaN or +inf: its weights are broken)."""
    logits = _shaped(logits, draws)
    if logits.is_cuda:
        return [None if token < 0 else token for token in _launch(logits, draws).tolist()]
    # By numpy, which compares sixteen logits at a time, where torch takes one after the other.
    rows_of_logits = logits.numpy()
    greedy = rows_of_logits.argmax(axis=-1)
    tokens: list[int | None] = [int(token) for token in greedy.tolist()]
    groups: dict[tuple[int, bool, bool], list[int]] = {}
    for row, draw in enumerate(draws):
        if not draw.is_greedy:
            kind = draw.sampling.top_k, draw.sampling.top_p < 1.0, draw.sampling.min_p > 0.0
            groups.setdefault(kind, []).append(row)
    for (top_k, has_top_p, _), rows in groups.items():
        drawn = _draw(logits[rows], [draws[row] for row in rows], top_k, has_top_p)
        for row, token in zip(rows, drawn, strict=True):
            tokens[row] = token
    finite = np.isfinite(rows_of_logits[np.arange(len(greedy)), greedy]).tolist()
    return [token if ok else None for token, ok in zip(tokens, finite, strict=True)]


def draw_on_device(logits: Tensor, draws: Sequence[Draw]) -> Tensor:
    """As `sample`, of draws without a shape, and nobody waits for a GPU. Returns int32 [n] beside the logits, -1 for
    None."""
    assert all(draw.shape is None for draw in draws), "the host has a say in a row"
    if logits.is_cuda:
        return _launch(logits, draws)
    tokens = [-1 if token is None else token for token in sample(logits, draws)]
    return torch.tensor(tokens, dtype=torch.int32)


def _launch(logits: Tensor, draws: Sequence[Draw]) -> Tensor:
    """All rows in one launch, without a sort. Draws go through the vocabulary in its order, not from the best down."""
    from kernels.sampling import sample_rows  # imports triton, which an engine without a GPU does without

    settings = [draw.sampling for draw in draws]
    columns = (
        [0.0 if draw.is_greedy else draw.sampling.temperature for draw in draws],
        [float(each.top_k) for each in settings],
        [each.top_p for each in settings],
        [each.min_p for each in settings],
        [draw.uniform for draw in draws],
    )
    rows = torch.tensor(columns, dtype=torch.float32, pin_memory=True).to(logits.device, non_blocking=True)
    return sample_rows(logits, rows[0], rows[1].int(), rows[2], rows[3], rows[4].clamp(max=1 - 2**-24))


def _shaped(logits: Tensor, draws: Sequence[Draw]) -> Tensor:
    """The logits themselves where no draw changes them. What is not finite stays for `sample` to see."""
    shaped = [(row, draw.shape) for row, draw in enumerate(draws) if draw.shape is not None]
    if shaped:
        logits = logits.clone()
        for row, shape in shaped:
            shape.apply(logits[row])
    return logits


def _draw(logits: Tensor, draws: Sequence[Draw], top_k: int, has_top_p: bool) -> list[int]:
    """Rows of one kind: temperature, then top_k, then top_p, then min_p, then one draw of what is left."""
    temperatures = torch.tensor([draw.sampling.temperature for draw in draws], device=logits.device)
    scaled = (logits - logits.max(dim=-1, keepdim=True).values) / temperatures[:, None]
    if not top_k and not has_top_p:
        return _pick(torch.softmax(scaled, dim=-1, dtype=torch.float64), draws)
    vocab = logits.shape[-1]
    width = min(top_k or TOP_P_WINDOW, vocab)
    values, ids = scaled.topk(width, dim=-1)
    whole = torch.logsumexp(values if top_k else scaled, dim=-1, keepdim=True)
    probabilities = (values - whole).double().exp()
    if has_top_p:
        top_p = torch.tensor([draw.sampling.top_p for draw in draws], dtype=torch.float64, device=logits.device)
        short = probabilities.sum(dim=-1) < top_p
        if not top_k and width < vocab and bool(short.any()):
            return _draw_with_full_sort(scaled, draws, short, probabilities, ids, top_p)
        probabilities = _nucleus(probabilities, top_p)
    return _resolve(ids, _pick(probabilities, draws))


def _draw_with_full_sort(
    scaled: Tensor, draws: Sequence[Draw], short: Tensor, probabilities: Tensor, ids: Tensor, top_p: Tensor
) -> list[int]:
    """Rows whose best tokens do not add up to top_p are sorted whole; the others stay as they would be alone."""
    tokens = _resolve(ids, _pick(_nucleus(probabilities, top_p), draws))
    for row in short.nonzero().flatten().tolist():
        values, order = scaled[row : row + 1].sort(dim=-1, descending=True, stable=True)
        kept = _nucleus(torch.softmax(values, dim=-1, dtype=torch.float64), top_p[row : row + 1])
        tokens[row] = _resolve(order, _pick(kept, [draws[row]]))[0]
    return tokens


def _nucleus(probabilities: Tensor, top_p: Tensor) -> Tensor:
    """Zero what lies past the smallest set that reaches top_p. Rows are in descending order; the first stays."""
    before = probabilities.cumsum(dim=-1) - probabilities
    kept = before < top_p[:, None]
    kept[:, 0] = True
    return probabilities * kept


def _pick(weights: Tensor, draws: Sequence[Draw]) -> list[int]:
    """Index into each row of float64 weights by inverse transform sampling, past what min_p leaves out."""
    if draws[0].sampling.min_p:
        least = torch.tensor([draw.sampling.min_p for draw in draws], dtype=torch.float64, device=weights.device)
        weights = weights * (weights >= least[:, None] * weights.amax(dim=-1, keepdim=True))
    sums = weights.cumsum(dim=-1)
    uniform = torch.tensor([draw.uniform for draw in draws], dtype=torch.float64, device=weights.device)
    target = uniform * sums[:, -1]
    found = torch.searchsorted(sums, target[:, None], right=True).flatten()
    # Rounding may put the target at the very end, past the last weight that is not zero.
    last = weights.shape[-1] - 1 - (weights.flip(-1) > 0).to(torch.uint8).argmax(dim=-1)
    return torch.minimum(found, last).tolist()


def _resolve(ids: Tensor, indices: list[int]) -> list[int]:
    return [int(ids[row, index]) for row, index in enumerate(indices)]
