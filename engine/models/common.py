"""What several families' files read and declare alike."""

from engine.models.config_json import ConfigJson
from engine.models.plan import Linear, Mlp, Shape
from kernels.paging import Activation

MAX_HEAD_DIM = 256  # of the CPU kernels' scratch memory


def read_shape(config: ConfigJson, *, eps: float = 1e-6, head_dim: int | None = None) -> Shape:
    """eps, head_dim: what transformers takes where config.json is silent. Raises ModelError."""
    config.only("quantization_config", None)
    config.only("pretraining_tp", 1)
    heads, hidden = config.count("num_attention_heads"), config.count("hidden_size")
    shape = Shape(
        vocab_size=config.count("vocab_size"),
        context_len=config.count("max_position_embeddings"),
        layers=config.count("num_hidden_layers"),
        hidden=hidden,
        q_heads=heads,
        kv_heads=config.count("num_key_value_heads", heads),
        head_dim=config.count("head_dim", head_dim or hidden // heads),
        eps=config.number("rms_norm_eps", eps),
    )
    if heads % shape.kv_heads:
        raise config.error(f"num_attention_heads {heads} is no multiple of num_key_value_heads {shape.kv_heads}")
    if shape.head_dim % 8 or not 16 <= shape.head_dim <= MAX_HEAD_DIM:
        raise config.error(f"head_dim is {shape.head_dim}, supported are multiples of 8 from 16 to {MAX_HEAD_DIM}")
    return shape


def split_qkv(shape: Shape, *, bias: bool = False) -> Linear:
    q, kv = shape.q_heads * shape.head_dim, shape.kv_heads * shape.head_dim
    names = (("self_attn.q_proj", q), ("self_attn.k_proj", kv), ("self_attn.v_proj", kv))
    return Linear(names, shape.hidden, bias)


def output(shape: Shape, *, bias: bool = False) -> Linear:
    return Linear((("self_attn.o_proj", shape.hidden),), shape.q_heads * shape.head_dim, bias)


def split_mlp(
    hidden: int, ffn: int, *, prefix: str = "mlp", activation: Activation = "silu", bias: bool = False
) -> Mlp:
    gate_up = Linear(((f"{prefix}.gate_proj", ffn), (f"{prefix}.up_proj", ffn)), hidden, bias)
    return Mlp(gate_up, Linear(((f"{prefix}.down_proj", hidden),), ffn, bias), activation)


def qwen_windows(config: ConfigJson, layers: int) -> list[int | None]:
    """The window of each layer: where use_sliding_window is set, of the layers that config.json counts as sliding."""
    window = config.optional_count("sliding_window", 4096) if config.flag("use_sliding_window") else None
    kinds = config.get("layer_types")
    if kinds is None:
        full = config.get("max_window_layers", 28)
        kinds = ["full_attention" if i < full else "sliding_attention" for i in range(layers)]
    return windows_of(config, kinds, layers, window)


def windows_of(config: ConfigJson, kinds: object, layers: int, window: int | None) -> list[int | None]:
    if not isinstance(kinds, list) or len(kinds) != layers or set(kinds) - {"full_attention", "sliding_attention"}:
        raise config.wrong("layer_types", f"it must list full_attention or sliding_attention for {layers} layers")
    return [window if kind == "sliding_attention" else None for kind in kinds]
