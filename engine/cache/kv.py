"""The key/value memory of all layers: page tensors and, in FP8, their scales."""

import torch

from engine.config import KVType
from engine.model_info import ModelInfo
from kernels.paging import PageStore

DTYPES: dict[KVType, torch.dtype] = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp8": torch.uint8}


class KVCache:
    """Page `p` of the pool is row `p` of every layer's tensors; `engine.cache.pages` decides who owns it.

    fp8: e3m4 codes with one float32 scale per token and head. scratch_page: one more than the pool has, for what pads
    a captured step; no sequence ever owns it.
    """

    def __init__(self, info: ModelInfo, pages: int, page_size: int, kv_type: KVType, device: str = "cpu") -> None:
        self.pages, self.page_size, self.kv_type = pages, page_size, kv_type
        self.bytes_per_token = bytes_per_token(info, kv_type)
        self.scratch_page = pages
        shape = (pages + 1, info.kv_heads, page_size)
        self.layers = [_page_store(shape, info.head_dim, kv_type, device) for _ in range(info.num_layers)]


def bytes_per_token(info: ModelInfo, kv_type: KVType) -> int:
    """K and V of one token in all layers, scales counted."""
    per_head = info.head_dim * DTYPES[kv_type].itemsize + (4 if kv_type == "fp8" else 0)
    return 2 * info.num_layers * info.kv_heads * per_head


def _page_store(shape: tuple[int, int, int], head_dim: int, kv_type: KVType, device: str) -> PageStore:
    pages, heads, page_size = shape
    dtype = DTYPES[kv_type]
    # Left unwritten on purpose: memory is then claimed page by page as tokens arrive, not at start.
    k = torch.empty(pages, heads, head_dim, page_size, dtype=dtype, device=device)
    v = torch.empty(pages, heads, page_size, head_dim, dtype=dtype, device=device)
    if kv_type != "fp8":
        return PageStore(k, v, None, None)
    scales = [torch.empty(shape, dtype=torch.float32, device=device) for _ in range(2)]
    return PageStore(k, v, *scales)
