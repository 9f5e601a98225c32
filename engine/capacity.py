"""`python -m engine.capacity MODEL --memory 80GB`: what fits, and what bounds a step. docs/capacity.md derives it."""

import argparse
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from engine.sizes import parse_bytes, shown_bytes

# Dense bf16 FLOP/s and bytes/s of memory, from NVIDIA's data sheets (SXM where there is a choice).
DEVICES = {
    "a100": (312e12, 2.039e12),
    "h100": (989e12, 3.35e12),
    "h200": (989e12, 4.8e12),
    "l40s": (362e12, 0.864e12),
}
# Bytes of one head's K or V of one token: of its numbers, and of their scale.
KV_BYTES = {"fp8": (1, 4), "bf16": (2, 0), "fp32": (4, 0)}
ADAPTER_BYTES = 2  # a number of an adapter, in bf16
# Bytes of one weight of a linear, and of the scale that each of its outputs has.
LINEAR_BYTES = {"bf16": (2, 0), "fp8": (1, 4), "int8": (1, 4)}


class CapacityError(Exception):
    """The question cannot be answered; the message says which part of it and why."""


@dataclass(frozen=True, kw_only=True)
class Shape:
    """A decoder as far as its size goes. experts: feed-forward blocks of a layer, active: those that a token uses."""

    layers: int
    hidden: int
    ffn: int
    q_heads: int
    kv_heads: int
    head_dim: int
    vocab: int
    tied: bool
    experts: int = 1
    active: int = 1

    @property
    def linears(self) -> tuple[tuple[int, int], ...]:
        """(out, in) of a layer's linears, one expert of them."""
        q, kv = self.q_heads * self.head_dim, self.kv_heads * self.head_dim
        attention = ((q, self.hidden), (kv, self.hidden), (kv, self.hidden), (self.hidden, q))
        return (*attention, (self.ffn, self.hidden), (self.ffn, self.hidden), (self.hidden, self.ffn))

    def parameters(self, *, active: bool = False) -> int:
        """Weights held, or those that one token is multiplied with."""
        attention = sum(out * inside for out, inside in self.linears[:4])
        expert = sum(out * inside for out, inside in self.linears[4:])
        router = self.hidden * self.experts if self.experts > 1 else 0
        layer = attention + router + expert * (self.active if active else self.experts) + 2 * self.hidden
        tables = 1 if self.tied or active else 2
        return self.layers * layer + tables * self.vocab * self.hidden + self.hidden

    def weight_bytes(self, dtype: str) -> int:
        """Of all weights; what is no linear of a layer is bf16."""
        attention, feed_forward = self.linears[:4], self.linears[4:] * self.experts
        number, scale = LINEAR_BYTES[dtype]
        held = self.layers * sum(out * inside for out, inside in (*attention, *feed_forward))
        outputs = self.layers * sum(out for out, _ in (*attention, *feed_forward))
        return (self.parameters() - held) * 2 + held * number + outputs * scale

    def kv_bytes(self, dtype: str) -> int:
        """Of one token, K and V of all layers, scales counted."""
        number, scale = KV_BYTES[dtype]
        return 2 * self.layers * self.kv_heads * (self.head_dim * number + scale)

    def adapter_bytes(self, rank: int) -> int:
        """A LoRA of this rank on every linear (of the dense part, and of one expert each), in bf16."""
        return ADAPTER_BYTES * rank * self.layers * sum(out + inside for out, inside in self.linears)


@dataclass(frozen=True, kw_only=True)
class Question:
    """memory: bytes of the device. reserve: part of it for activations and the allocator. context: tokens of a
    sequence, prompt and answer. flops, bandwidth: per second."""

    memory: int
    weight_dtype: str = "bf16"
    kv_dtype: str
    context: int
    slots: int
    rank: int
    reserve: float
    page_size: int
    flops: float
    bandwidth: float


@dataclass(frozen=True, kw_only=True)
class Answer:
    """Bytes, tokens, sequences; ridge in FLOP per byte, ridge_tokens in tokens of a step."""

    kv_bytes: int
    weight_bytes: int
    adapter_bytes: int
    pool_bytes: int
    pool_tokens: int
    concurrency: int
    ridge: float
    ridge_tokens: float
    step_seconds: float
    tokens_per_second: float


def answer(shape: Shape, question: Question) -> Answer:
    """Raises CapacityError where the weights alone do not fit."""
    weights = shape.weight_bytes(question.weight_dtype)
    adapters, usable = question.slots * shape.adapter_bytes(question.rank), question.memory * (1 - question.reserve)
    left = int(usable) - weights - adapters
    if left <= 0:
        raise CapacityError(
            f"{shown_bytes(weights)} of weights and {shown_bytes(adapters)} of adapter slots leave no room for K and V "
            f"in {shown_bytes(usable)}: use more memory, fewer slots or a lower rank"
        )
    per_token = shape.kv_bytes(question.kv_dtype)
    pages = left // (per_token * question.page_size)
    concurrency = pages // -(-question.context // question.page_size)
    ridge = question.flops / question.bandwidth
    read = weights + concurrency * question.context * per_token
    step = max(read / question.bandwidth, 2 * shape.parameters(active=True) * concurrency / question.flops)
    return Answer(
        kv_bytes=per_token,
        weight_bytes=weights,
        adapter_bytes=adapters,
        pool_bytes=left,
        pool_tokens=pages * question.page_size,
        concurrency=concurrency,
        ridge=ridge,
        ridge_tokens=ridge * weights / 2 / shape.parameters(active=True),
        step_seconds=step,
        tokens_per_second=concurrency / step,
    )


def read_shape(path: Path) -> Shape:
    """path: a model folder, or its config.json. Raises CapacityError naming the field."""
    file = path / "config.json" if path.is_dir() else path
    try:
        raw = json.loads(file.read_text())
    except (OSError, ValueError) as error:
        raise CapacityError(f"{file} cannot be read as a model's config.json: {error}") from error
    if not isinstance(raw, dict):
        raise CapacityError(f"{file} holds no object")
    raw = raw.get("text_config", raw)
    heads, hidden = _number(raw, "num_attention_heads", file), _number(raw, "hidden_size", file)
    experts = raw.get("num_experts") or raw.get("num_local_experts")
    moe_ffn = raw.get("moe_intermediate_size") if experts else None
    return Shape(
        layers=_number(raw, "num_hidden_layers", file),
        hidden=hidden,
        ffn=_number(raw, "moe_intermediate_size" if moe_ffn else "intermediate_size", file),
        q_heads=heads,
        kv_heads=_number(raw, "num_key_value_heads", file) if raw.get("num_key_value_heads") else heads,
        head_dim=_number(raw, "head_dim", file) if raw.get("head_dim") else hidden // heads,
        vocab=_number(raw, "vocab_size", file),
        tied=bool(raw.get("tie_word_embeddings", False)),
        experts=experts or 1,
        active=_number(raw, "num_experts_per_tok", file) if experts else 1,
    )


def _number(raw: Mapping[str, Any], field: str, file: Path) -> int:
    value = raw.get(field)
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise CapacityError(f"{file}: {field} is {value!r}, it must be a positive integer")
    return value


def report(shape: Shape, question: Question, found: Answer) -> str:
    billions = shape.parameters() / 1e9
    lines = (
        (f"weights, {question.weight_dtype}", f"{shown_bytes(found.weight_bytes)} ({billions:.2f} billion)"),
        (f"KV per token, {question.kv_dtype}", f"{shown_bytes(found.kv_bytes)} ({found.kv_bytes} B)"),
        (f"{question.slots} adapter slots, rank {question.rank}", shown_bytes(found.adapter_bytes)),
        ("left for the KV pool", f"{shown_bytes(found.pool_bytes)} = {found.pool_tokens:,} tokens"),
        (f"sequences of {question.context:,} tokens", f"{found.concurrency:,} at once"),
        ("ridge point", f"{found.ridge:.0f} FLOP/B: a step turns compute-bound at {found.ridge_tokens:.0f} tokens"),
        ("a decode step of all of them", f"at least {found.step_seconds * 1e3:.1f} ms"),
        ("decode throughput", f"at most {found.tokens_per_second:,.0f} tokens/s"),
    )
    width = max(len(name) for name, _ in lines)
    return "\n".join(f"{name:<{width}}  {value}" for name, value in lines)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(2, f"capacity: {message} (see python -m engine.capacity --help)\n")


def _question(options: argparse.Namespace) -> Question:
    flops, bandwidth = DEVICES[options.device]
    question = Question(
        memory=parse_bytes(options.memory),
        weight_dtype=options.weights,
        kv_dtype=options.kv_dtype,
        context=options.context,
        slots=options.adapter_slots,
        rank=options.rank,
        reserve=options.reserve,
        page_size=options.page_size,
        flops=options.flops or flops,
        bandwidth=options.bandwidth or bandwidth,
    )
    for name in ("memory", "context", "rank", "page_size", "flops", "bandwidth"):
        if not getattr(question, name) > 0:
            raise CapacityError(f"--{name.replace('_', '-')} is {getattr(question, name)}: it must be over 0")
    if question.slots < 0 or not 0 <= question.reserve < 1:
        raise CapacityError(f"--adapter-slots is {question.slots} and --reserve {question.reserve}: 0 or more, below 1")
    return question


def main(arguments: list[str] | None = None) -> int:
    parser = _Parser(prog="python -m engine.capacity", description="What a model needs, and what fits beside it.")
    add = parser.add_argument
    add("model", type=Path, help="model folder or config.json")
    add("--memory", required=True, help="of the device, such as 80GB or 64GiB")
    add("--device", choices=sorted(DEVICES), default="h100", help="whose speed to reckon with (%(default)s)")
    add("--flops", type=float, help="another device's bf16 FLOP/s")
    add("--bandwidth", type=float, help="another device's bytes/s")
    add("--weights", choices=sorted(LINEAR_BYTES), default="bf16", help="what the linears are kept in (%(default)s)")
    add("--kv-dtype", choices=sorted(KV_BYTES), default="fp8")
    add("--context", type=int, default=4096, help="tokens of a sequence, prompt and answer (%(default)s)")
    add("--adapter-slots", type=int, default=64)
    add("--rank", type=int, default=16, help="of the adapters in the slots (%(default)s)")
    add("--reserve", type=float, default=0.1, help="part of the memory for activations (%(default)s)")
    add("--page-size", type=int, default=16)
    options = parser.parse_args(arguments)
    try:
        shape, question = read_shape(options.model), _question(options)
        sys.stdout.write(report(shape, question, answer(shape, question)) + "\n")
    except (CapacityError, ValueError) as error:
        sys.stderr.write(f"capacity: {error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
