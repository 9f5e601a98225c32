"""`AdapterSpec`: what a checked adapter is, in names and numbers; its tensors stay in their files."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Limits:
    """max_rank: of any module. max_bytes: of all files together. max_saved_bytes: of the whole weights among them, each
    of which takes as much of a device as hundreds of LoRA pairs."""

    max_rank: int = 64
    max_bytes: int = 512_000_000
    max_saved_bytes: int = 256_000_000


@dataclass(frozen=True, slots=True)
class ModuleLora:
    """One module's update, `scaling * B A`: tensors `a_key` [rank, in] and `b_key` [out, rank] of the files.

    layer, module: its place in a layer, such as `self_attn.q_proj`, or `base_shape.OUTSIDE` and `lm_head` or
    `embed_tokens` (whose A and B are lora_embedding_A and _B). magnitude_key [out]: DoRA's. lora_bias_key [out]: added
    to B's output, before scaling. bias_key [out]: in place of the base's. A module with nothing but a bias has rank 0
    and empty keys.
    """

    layer: int
    module: str
    rank: int
    scaling: float
    a_key: str
    b_key: str
    magnitude_key: str | None = None
    lora_bias_key: str | None = None
    bias_key: str | None = None


@dataclass(frozen=True, slots=True)
class AdapterSpec:
    """A checked adapter. modules: by layer and module. target_modules: sorted short names (`q_proj`).

    dtype: F32, F16 or BF16, the widest in the files. size_bytes: of all `files` (sorted). digest: `folder_digest`.
    saved: the whole weights [vocabulary, hidden] that stand in for those of `embed_tokens` and `lm_head`, by tensor.
    invocation: tokens that switch it on; empty: it is always on.
    """

    modules: tuple[ModuleLora, ...]
    max_rank: int
    target_modules: tuple[str, ...]
    dtype: str
    size_bytes: int
    digest: str
    files: tuple[str, ...] = ()
    saved: Mapping[str, str] = field(default_factory=dict)
    invocation: tuple[int, ...] = ()
