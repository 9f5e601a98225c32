"""The Llama family: RMS norm, rotary positions, grouped-query attention, SiLU-gated feed-forward, no biases."""

from torch import Tensor

from engine.adapters.bank import LoraBank
from engine.cache.kv import KVCache
from engine.model_info import FUSED, ModelInfo
from engine.models.decoder_config import DecoderConfig
from engine.models.layers import Angles, DecoderLayer, LoraLinear, Ops, Step
from engine.models.weights import Checkpoint, ModelError


def model_info(config: DecoderConfig, name: str) -> ModelInfo:
    q, kv = config.q_heads * config.head_dim, config.kv_heads * config.head_dim
    modules = {
        "self_attn.q_proj": (q, config.hidden),
        "self_attn.k_proj": (kv, config.hidden),
        "self_attn.v_proj": (kv, config.hidden),
        "self_attn.o_proj": (config.hidden, q),
        "mlp.gate_proj": (config.ffn, config.hidden),
        "mlp.up_proj": (config.ffn, config.hidden),
        "mlp.down_proj": (config.hidden, config.ffn),
    }
    return ModelInfo(
        name=name,
        vocab_size=config.vocab_size,
        context_len=config.context_len,
        num_layers=config.layers,
        hidden=config.hidden,
        q_heads=config.q_heads,
        kv_heads=config.kv_heads,
        head_dim=config.head_dim,
        modules=modules,
    )


class Llama:
    """Weights of one model, and the forward pass over a step's tokens."""

    def __init__(
        self, config: DecoderConfig, info: ModelInfo, checkpoint: Checkpoint, bank: LoraBank, ops: Ops
    ) -> None:
        self._config, self._ops, self._bank = config, ops, bank
        self._dtype, self._device = bank.dtype, bank.device
        width = (config.vocab_size, config.hidden)
        self._embedding = checkpoint.take("model.embed_tokens.weight", width, self._dtype, self._device)
        self._layers = [self._layer(index, info, checkpoint) for index in range(config.layers)]
        self._norm = self._vector("model.norm.weight", checkpoint)
        self._head = (
            self._embedding if config.tied else checkpoint.take("lm_head.weight", width, self._dtype, self._device)
        )
        self._angles = Angles.build(config.rope, config.head_dim, config.context_len, self._device)
        _refuse_leftovers(checkpoint, config)

    def hidden(self, tokens: Tensor, step: Step, kv: KVCache) -> tuple[Tensor, Tensor]:
        """tokens: int64 [tokens] -> (residual float32 [tokens, hidden], what the last layer adds to it)."""
        residual = self._embedding[tokens].float()
        delta: Tensor | None = None
        for layer, pages in zip(self._layers, kv.layers, strict=True):
            delta = layer(residual, delta, step, pages, self._angles, self._config.eps, self._ops)
        assert delta is not None, "a decoder has at least one layer"
        return residual, delta

    def logits(self, residual: Tensor, delta: Tensor) -> Tensor:
        """Rows of `hidden` -> float32 [rows, vocab]. residual is changed in place."""
        return self._ops.linear(self._ops.add_norm(residual, delta, self._norm, self._config.eps), self._head).float()

    def _layer(self, index: int, info: ModelInfo, checkpoint: Checkpoint) -> DecoderLayer:
        def linear(site: tuple[str, ...]) -> LoraLinear:
            names = [f"model.layers.{index}.{module}.weight" for module in site]
            weight = checkpoint.fused(names, [info.modules[module] for module in site], self._dtype, self._device)
            return LoraLinear(weight, self._bank.table(index, site))

        qkv, o, gate_up, down = (linear(site) for site in FUSED)
        attention_norm = self._vector(f"model.layers.{index}.input_layernorm.weight", checkpoint)
        mlp_norm = self._vector(f"model.layers.{index}.post_attention_layernorm.weight", checkpoint)
        return DecoderLayer(attention_norm, qkv, o, mlp_norm, gate_up, down)

    def _vector(self, name: str, checkpoint: Checkpoint) -> Tensor:
        return checkpoint.take(name, (self._config.hidden,), self._dtype, self._device)


def _refuse_leftovers(checkpoint: Checkpoint, config: DecoderConfig) -> None:
    """A tensor that nothing reads would mean that another model is served than the folder holds."""
    derived = {"lm_head.weight"} if config.tied else set()
    left = sorted(
        name for name in checkpoint.untaken() - derived if not name.endswith(("rotary_emb.inv_freq", "masked_bias"))
    )
    if left:
        shown = ", ".join(left[:5]) + (f" and {len(left) - 5} more" if len(left) > 5 else "")
        raise ModelError(f"{checkpoint.folder} holds tensors that {config.architecture} has no place for: {shown}")
