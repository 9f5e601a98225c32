"""Every knob of an engine, in one frozen object. Derived values are returned, never written back."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

KVType = Literal["fp32", "bf16", "fp8"]
WeightType = Literal["bf16", "fp8", "int8"]
Speculate = Literal["off", "lookup", "draft"]


@dataclass(frozen=True, kw_only=True)
class EngineConfig:
    """model: a Hugging Face folder (config.json, tokenizer.json, *.safetensors). home: where the journal lives.

    exact: fp32 weights, the mode oracles compare in. weights: what the base model's linears are kept in otherwise; in
    one byte each also their activations are multiplied in one, while adapters are fed 16 bits. kv: what keys and values
    are kept in; None = fp32 in exact mode, else fp8.
    kv_pool_tokens: capacity of the page pool; 0 = what a CUDA device has room for beside the rest.
    step_tokens: token budget of one step (chunked prefill).
    adapter_host_bytes: host memory for adapters behind the slots. adapter_disk_bytes: disk below `home`, for those that
    were fetched from another machine. pinned: folders of adapters that keep their slot.
    speculate: who guesses tokens ahead, where that pays: nobody, the text itself, or the model in folder draft_model.
    """

    model: Path
    home: Path
    url: str
    device: str = "cpu"
    exact: bool = False
    weights: WeightType = "bf16"
    kv: KVType | None = None
    page_size: int = 16
    kv_pool_tokens: int = 65_536
    step_tokens: int = 512
    max_running: int = 64
    max_waiting: int = 4096
    max_waiting_per_tenant: int = 1024
    adapter_slots: int = 16
    adapter_host_bytes: int = 1 << 30
    adapter_disk_bytes: int = 8 << 30
    pinned: tuple[Path, ...] = ()
    max_rank: int = 64
    max_saved_bytes: int = 256_000_000
    speculate: Speculate = "lookup"
    draft_model: Path | None = None
    drain_seconds: float = 5.0
    metrics_port: int = 0  # 0 = none
    threads: int = 0  # 0 = all cores

    def __post_init__(self) -> None:
        for name in (
            "page_size",
            "kv_pool_tokens",
            "step_tokens",
            "max_running",
            "max_waiting",
            "max_waiting_per_tenant",
            "adapter_slots",
            "adapter_host_bytes",
            "adapter_disk_bytes",
            "max_rank",
            "max_saved_bytes",
        ):
            value: int = getattr(self, name)
            if value < 1 and (value, name, self.device) != (0, "kv_pool_tokens", "cuda"):
                raise ValueError(f"{name} is {value}: it must be at least 1")
        if self.weights != "bf16" and self.exact:
            raise ValueError(f"weights is {self.weights} and exact keeps them in fp32: leave one of the two out")
        if self.weights == "fp8" and self.device != "cuda":
            raise ValueError(f"weights is fp8, which device {self.device} does not multiply: use int8, or bf16")
        if self.draft_model is not None and not self.kv_pool_tokens:
            raise ValueError("kv_pool_tokens is 0 and there is a draft model, whose pages need room too: give a number")
        if self.step_tokens <= self.max_running:
            raise ValueError(
                f"step_tokens ({self.step_tokens}) must be over max_running ({self.max_running}): each running "
                "sequence takes one token of a step, and a new one needs at least one more"
            )
        if not 0 <= self.metrics_port < 65_536:
            raise ValueError(f"metrics_port is {self.metrics_port}: it must be 1 to 65535, or 0 for none")
        if not 0 <= self.drain_seconds <= 3600:
            raise ValueError(f"drain_seconds is {self.drain_seconds}: it must be 0 (none) to 3600")
        if (self.draft_model is not None) != (self.speculate == "draft"):
            raise ValueError(
                f"draft_model is {self.draft_model} and speculate is {self.speculate}: speculate draft needs a draft "
                "model, and nothing else uses one"
            )
        if self.threads < 0:
            raise ValueError(f"threads is {self.threads}: it must be 0 (all cores) or more")
        if self.kv_pool_tokens % self.page_size:
            raise ValueError(
                f"kv_pool_tokens ({self.kv_pool_tokens}) must be a multiple of page_size ({self.page_size})"
            )

    @property
    def kv_type(self) -> KVType:
        return self.kv or ("fp32" if self.exact else "fp8")

    @property
    def pages(self) -> int:
        return self.kv_pool_tokens // self.page_size
