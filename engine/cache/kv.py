"""The key/value memory of all layers: page tensors and, in FP8, their scales."""

import torch

from engine.model_info import ModelInfo
from kernels.paging import PageStore


class KVCache:
    """Page `p` of the pool is row `p` of every layer's tensors; `engine.cache.pages` decides who owns it.

    exact: float32 pages; otherwise e4m3 codes with one float32 scale per token and head.
    """

    def __init__(self, info: ModelInfo, pages: int, page_size: int, *, exact: bool, device: str = "cpu") -> None:
        self.pages, self.page_size, self.exact = pages, page_size, exact
        self.bytes_per_token = _bytes_per_token(info, exact)
        shape = (pages, info.kv_heads, page_size)
        self.layers = [_page_store(shape, info.head_dim, exact, device) for _ in range(info.num_layers)]


def _bytes_per_token(info: ModelInfo, exact: bool) -> int:
    per_head = 4 * info.head_dim if exact else info.head_dim + 4
    return 2 * info.num_layers * info.kv_heads * per_head


def _page_store(shape: tuple[int, int, int], head_dim: int, exact: bool, device: str) -> PageStore:
    pages, heads, page_size = shape
    dtype = torch.float32 if exact else torch.uint8
    # Left unwritten on purpose: memory is then claimed page by page as tokens arrive, not at start.
    k = torch.empty(pages, heads, head_dim, page_size, dtype=dtype, device=device)
    v = torch.empty(pages, heads, page_size, head_dim, dtype=dtype, device=device)
    if exact:
        return PageStore(k, v, None, None)
    scales = [torch.empty(shape, dtype=torch.float32, device=device) for _ in range(2)]
    return PageStore(k, v, *scales)
