"""What the rest of the engine may know about a base model: its shapes, never its weights."""

from collections.abc import Mapping
from dataclasses import dataclass

# Linears that read the same activation and run as one GEMM. Order is the order of their rows in the fused weight.
FUSED = (
    ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
    ("self_attn.o_proj",),
    ("mlp.gate_proj", "mlp.up_proj"),
    ("mlp.down_proj",),
)


@dataclass(frozen=True)
class ModelInfo:
    """Shapes of a decoder. modules: the linears of one layer that an adapter may change, name -> (out, in) features.

    fused: which of them are computed as one. switch_len: a sequence that may grow beyond it has other positions, thus
    other K/V, than one that may not (LongRoPE); None for most models. window: keys that a token sees, itself included,
    where every layer has a sliding window; None: some layer sees all.
    """

    name: str
    vocab_size: int
    context_len: int
    num_layers: int
    hidden: int
    q_heads: int
    kv_heads: int
    head_dim: int
    modules: Mapping[str, tuple[int, int]]
    fused: tuple[tuple[str, ...], ...] = FUSED
    switch_len: int | None = None
    window: int | None = None

    @property
    def sites(self) -> tuple[tuple[str, ...], ...]:
        """Modules of one layer grouped as they are computed: one group, one GEMM, one LoRA launch."""
        return tuple(group for names in self.fused if (group := tuple(name for name in names if name in self.modules)))
