"""A toy base model on the real engine core: answers in microseconds, and notices every page that is not its own.

What it says is a pure function of the tokens so far and of the adapter, read back from the pages it was given. So a
page of another tenant, adapter or prefix changes the answer, and `expected_tokens` says what the answer should be.
Run as a program, it is an engine process to kill.
"""

import argparse
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path

import torch
from llguidance import LLTokenizer, TokenizerWrapper
from torch import Tensor

from engine.adapters.bank import LoraWeights
from engine.adapters.host_cache import Weights
from engine.adapters.pool import AdapterPool, AdapterUnavailable
from engine.config import EngineConfig
from engine.core import Engine
from engine.decoding.grammar import Grammars
from engine.decoding.sampler import Draw, sample
from engine.decoding.text_stream import TextStream
from engine.grammar_desk import Compiler
from engine.metering.energy import EnergyMeter
from engine.metering.journal import Journal
from engine.models.rows import Rows
from engine.protocol import (
    AdapterRef,
    Description,
    Detokenize,
    Detokenized,
    Generate,
    Prepare,
    Prepared,
    Sampling,
)
from engine.scheduling.admission import Limits, pool_limit
from engine.scheduling.sequence import Batch
from engine.server import Server
from engine.spans import Spans
from tests.engine.toy_device import Schedule, ToyDevice

VOCAB = 40
EOS = 0
CONTEXT_LEN = 200
BASE = "base"


def toy_logits(tokens: list[int], adapter: str, vocab: int = VOCAB) -> Tensor:
    """float32 [vocab] from the tokens and the adapter's digest. No two are equal."""
    data = b",".join(b"%d" % token for token in tokens) + b"|" + adapter.encode()
    raw = blake2b(data, digest_size=vocab).digest()
    return torch.tensor(list(raw), dtype=torch.float32) / 32 + torch.arange(vocab) / 4096


def expected_tokens(request: Generate, seed: int = 0, window: int | None = None) -> list[int]:
    """The completion, computed without pages, batches, chunks or a cache. window: tokens that count."""
    tokens, adapter = list(request.token_ids), request.adapter.digest if request.adapter else BASE
    for _ in range(min(request.sampling.max_tokens, CONTEXT_LEN - len(tokens))):
        draw = Draw(request.sampling, request.sampling.seed or seed, len(tokens))
        token = sample(toy_logits(tokens[-(window or 0) :], adapter)[None], [draw])[0]
        assert token is not None
        tokens.append(token)
        if token == EOS:
            break
    return tokens[len(request.token_ids) :]


class ToyBank:
    """Slot -> digest of the adapter written there."""

    def __init__(self) -> None:
        self.slots: dict[int, str] = {}

    def write(self, slot: int, weights: Weights) -> None:
        assert slot not in self.slots, "the slot was not cleared before it is written"
        (lora,) = weights.values()
        self.slots[slot] = bytes(lora.a.tolist()).decode()

    def clear(self, slot: int) -> None:
        self.slots.pop(slot, None)


@dataclass
class ToyModel:
    """fault: called before every step; may raise or sleep. seen: (request id, slot, tokens) of each step's runs.
    window: tokens that an answer depends on; None: all."""

    bank: ToyBank
    page_size: int
    window: int | None = None
    fault: Callable[[Batch], None] = lambda batch: None
    memory: dict[tuple[int, int], tuple[int, str]] = field(default_factory=dict)
    seen: list[list[tuple[str, int | None, int]]] = field(default_factory=list)

    def run(self, batch: Batch) -> Rows:
        self.fault(batch)
        self.seen.append([(run.sequence.request_id, run.sequence.slot, run.length) for run in batch.runs])
        logits, hidden = list[Tensor](), list[Tensor]()
        for run in batch.runs:
            sequence = run.sequence
            adapter = BASE if sequence.slot is None else self.bank.slots[sequence.slot]
            for position, token in enumerate(run.tokens, run.start):
                self.memory[self._place(sequence.pages, position)] = (token, adapter)
            for end in range(run.start + run.length - run.rows + 1, run.start + run.length + 1):
                first = 0 if self.window is None else max(0, end - self.window)
                assert sequence.behind * self.page_size <= first, "a page behind no window is gone"
                entries = [self.memory[self._place(sequence.pages, p)] for p in range(first, end)]
                assert {seen for _, seen in entries} == {adapter}, "K/V of another adapter"
                rows = hidden if sequence.pools else logits
                rows.append(toy_logits([token for token, _ in entries], adapter))
        stacked = [torch.stack(rows) if rows else torch.empty(0, VOCAB) for rows in (logits, hidden)]
        return Rows(*stacked)

    def _place(self, pages: list[int], position: int) -> tuple[int, int]:
        return pages[position // self.page_size], position % self.page_size


class ToyTexts:
    """Token n reads as one letter."""

    eos_ids = frozenset({EOS})

    def prepare(self, prompt: Prepare) -> Prepared:
        return Prepared(prompt.call_id, tuple(2 + ord(letter) % (VOCAB - 2) for letter in prompt.text or ""))

    def detokenize(self, call: Detokenize) -> Detokenized:
        return Detokenized(call.call_id, self.decode(list(call.token_ids)))

    def stream(self, stop: tuple[str, ...] = (), *, include_stop: bool = False) -> TextStream:
        return TextStream(self.decode, stop, include_stop=include_stop)

    def piece(self, token: int) -> bytes:
        return self.decode([token]).encode()

    def decode(self, ids: list[int]) -> str:
        return "".join(chr(ord("A") + token) for token in ids)


def toy_adapter(name: str, rank: int = 4) -> AdapterRef:
    return AdapterRef(version=name, uri=f"toy:{name}", digest=name, rank=rank)


def toy_load(adapter: AdapterRef) -> Weights:
    """An adapter whose version starts with `broken` cannot be loaded."""
    if adapter.version.startswith("broken"):
        raise AdapterUnavailable("it is broken", permanent=True)
    a = torch.tensor(list(adapter.digest.encode()), dtype=torch.uint8)
    return {(0, "toy"): LoraWeights(a, a, 1.0)}


class ToyVocabulary:
    """What llguidance asks of a tokenizer."""

    eos_token_id, bos_token_id, special_token_ids = EOS, None, (EOS,)
    tokens = tuple(chr(ord("A") + token).encode() for token in range(VOCAB))

    def __call__(self, text: bytes | str) -> list[int]:
        letters = text.encode() if isinstance(text, str) else text
        return [self.tokens.index(bytes([letter])) for letter in letters]


def toy_grammars() -> Grammars:
    """Texts are words of the letters that the toy's tokens read as; the first of them is the end."""
    return Grammars(LLTokenizer(TokenizerWrapper(ToyVocabulary())), VOCAB)


@dataclass
class Toy:
    engine: Engine
    model: ToyModel
    adapters: AdapterPool
    journal: Journal
    config: EngineConfig
    grammars: Compiler  # the server's
    device: ToyDevice | None = None


def toy_engine(
    home: Path,
    *,
    page_size: int = 4,
    kv_pool_tokens: int = 256,
    step_tokens: int = 16,
    max_running: int = 6,
    adapter_slots: int = 2,
    max_waiting: int = 100,
    max_waiting_per_tenant: int = 100,
    host_bytes: int = 1 << 20,
    url: str = "ipc://unused",
    load: Callable[[AdapterRef], Weights] = toy_load,
    clock: Callable[[], float] = time.monotonic,
    switch_len: int | None = None,
    window: int | None = None,
    spans: Spans | None = None,
    overlaps: Schedule | None = None,
    energy: EnergyMeter | None = None,
) -> Toy:
    """overlaps: the model is a device that computes on its own while the host goes on."""
    config = EngineConfig(
        model=home,
        home=home,
        url=url,
        page_size=page_size,
        kv_pool_tokens=kv_pool_tokens,
        step_tokens=step_tokens,
        max_running=max_running,
        adapter_slots=adapter_slots,
        max_waiting=max_waiting,
        max_waiting_per_tenant=max_waiting_per_tenant,
        max_rank=8,
    )
    bank, journal = ToyBank(), Journal(home)
    model = ToyModel(bank, page_size, window)
    adapters = AdapterPool(bank, adapter_slots, load, host_bytes)
    limits = Limits(
        VOCAB, CONTEXT_LEN, pool_limit(config, window, CONTEXT_LEN), config.max_rank, switch_len, max_running, window
    )
    grammars = toy_grammars()
    device = ToyDevice(model, overlaps) if overlaps else None
    engine = Engine(
        config, limits, model, ToyTexts(), adapters, journal, constraints=grammars.constraint, device=device,
        spans=spans, energy=energy, clock=clock,
    )  # fmt: skip
    if device is not None:
        device.pool = engine._scheduler._pool
    return Toy(engine, model, adapters, journal, config, grammars, device)


def toy_server(toy: Toy, drain_seconds: float = 0.0, energy: EnergyMeter | None = None) -> Server:
    description = Description("", toy.journal.engine_id, "boot", "toy", CONTEXT_LEN, 256, 8, 2, "cpu", True)
    return Server(
        toy.config.url,
        toy.engine,
        ToyTexts(),
        toy.journal,
        description,
        grammars=toy.grammars,
        drain_seconds=drain_seconds,
        energy=energy,
    )


def talkative(count: int, max_tokens: int, adapters: str = "") -> list[Generate]:
    """Requests r0, r1, ... whose answers use up max_tokens; the i-th one's adapter is `adapters[i]`, around."""
    asked: list[Generate] = []
    seed = 0
    while len(asked) < count:
        seed += 1
        adapter = toy_adapter(adapters[len(asked) % len(adapters)]) if adapters else None
        prompt = tuple(1 + (seed * step + seed // 37) % 37 for step in range(1, 6))
        each = Generate(f"r{len(asked)}", "t", "salt", prompt, greedy(max_tokens), adapter)
        if len(expected_tokens(each)) == max_tokens:
            asked.append(each)
    return asked


def greedy(max_tokens: int = 5, **options: object) -> Sampling:
    return Sampling(max_tokens=max_tokens, temperature=0.0, **options)  # type: ignore[arg-type]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--home", type=Path)
    parser.add_argument("--url")
    parser.add_argument("--step-seconds", type=float, default=0.0)
    options = parser.parse_args()
    toy = toy_engine(options.home, url=options.url)
    toy.model.fault = lambda batch: time.sleep(options.step_seconds)
    server = toy_server(toy)
    signal.signal(signal.SIGTERM, lambda *_: server.stop())
    assert threading.current_thread() is threading.main_thread()
    print("ready", flush=True)  # noqa: T201 - the parent waits for it
    server.serve()


if __name__ == "__main__":
    main()
