"""llama.cpp through its batch API as a server: every step decodes one token of each sequence that has begun, and as
much of the prompts that wait as fits. Runs in its own environment, like `peft_worker`."""

import ctypes
import time
from dataclasses import dataclass, field
from typing import Any

import llama_cpp as api
import numpy as np

from benchmarks.comparison.workers.wire import Json, serve

STEP_TOKENS = 512
PAD = 256


@dataclass
class Sequence:
    """held: tokens whose keys and values are there."""

    place: int
    ask: Json
    asked: float
    held: int = 0
    ids: list[int] = field(default_factory=list)
    times: list[float] = field(default_factory=list)

    @property
    def tokens(self) -> list[int]:
        prompt: list[int] = self.ask["prompt"]
        return prompt + self.ids

    @property
    def is_done(self) -> bool:
        return len(self.ids) >= int(self.ask["answer"])


class Server:
    """settings: model (a GGUF), adapters (name -> GGUF), threads."""

    def __init__(self, settings: Json) -> None:
        api.llama_backend_init()
        self.threads = settings["threads"]
        params = api.llama_model_default_params()
        params.n_gpu_layers = 0
        self.model = api.llama_model_load_from_file(settings["model"].encode(), params)
        assert self.model, "llama.cpp did not read the model"
        self.vocab = api.llama_vocab_n_tokens(api.llama_model_get_vocab(self.model))
        self.adapters = {
            name: api.llama_adapter_lora_init(self.model, path.encode()) for name, path in settings["adapters"].items()
        }
        assert all(self.adapters.values()), "llama.cpp did not read an adapter"
        self.batch = api.llama_batch_init(STEP_TOKENS, 0, 1)
        self.shape: tuple[int, int, bool] | None = None
        self.context: Any = None

    def answer(self, job: Json) -> Json:
        asks = job["asks"]
        names = {ask["adapter"] for ask in asks}
        assert len(names) == 1, "a batch has one adapter set"
        longest = max(len(ask["prompt"]) + ask["answer"] for ask in asks)
        self._fit(len(asks), -(-longest // PAD) * PAD, job["shared"] > 0)
        self._adapt(names.pop())
        answers = self._all(asks, job["shared"])
        api.llama_memory_clear(api.llama_get_memory(self.context), True)
        return {"answers": answers}

    def _fit(self, sequences: int, each: int, unified: bool) -> None:
        """A context for so many sequences of `each` tokens; one pool for all pays where they share a prefix."""
        if self.shape == (sequences, each, unified):
            return
        if self.context:
            api.llama_free(self.context)
        params = api.llama_context_default_params()
        params.n_ctx, params.n_seq_max, params.kv_unified = sequences * each, sequences, unified
        params.n_batch = params.n_ubatch = STEP_TOKENS
        params.n_threads = params.n_threads_batch = self.threads
        self.context = api.llama_init_from_model(self.model, params)
        assert self.context, f"llama.cpp made no context for {sequences} sequences of {each} tokens"
        self.shape = (sequences, each, unified)

    def _adapt(self, name: str | None) -> None:
        found = [self.adapters[name]] if name else []
        pointers = (api.llama_adapter_lora_p_ctypes * len(found))(*found)
        scales = (ctypes.c_float * len(found))(*(1.0 for _ in found))
        code = api.llama_set_adapters_lora(self.context, pointers, len(found), scales)
        assert code == 0, f"llama.cpp did not take the adapter: {code}"

    def _all(self, asks: list[Json], shared: int) -> list[Json]:
        begun: dict[int, Sequence] = {}
        while len(begun) < len(asks) or not all(sequence.is_done for sequence in begun.values()):
            for place, ask in enumerate(asks):
                after = ask["after"]
                if place not in begun and (after is None or (after in begun and begun[after].ids)):
                    begun[place] = self._begin(place, ask, 0 if after is None else shared)
            self._step([sequence for sequence in begun.values() if not sequence.is_done])
        return [
            {"asked": sequence.asked, "times": sequence.times, "ids": sequence.ids}
            for _, sequence in sorted(begun.items())
        ]

    def _begin(self, place: int, ask: Json, shared: int) -> Sequence:
        if shared:
            api.llama_memory_seq_cp(api.llama_get_memory(self.context), ask["after"], place, 0, shared)
        return Sequence(place, ask, time.perf_counter(), shared)

    def _step(self, sequences: list[Sequence]) -> None:
        """Those that decode come first: they have one token left to compute, and none of them waits for a prompt."""
        self.batch.n_tokens, rows = 0, list[tuple[int, Sequence]]()
        for sequence in sorted(sequences, key=lambda each: not each.ids):
            tokens = sequence.tokens
            chunk = tokens[sequence.held :][: STEP_TOKENS - self.batch.n_tokens]
            for token in chunk:
                self._put(token, sequence.held, sequence.place)
                sequence.held += 1
            if chunk and sequence.held == len(tokens):
                self.batch.logits[self.batch.n_tokens - 1] = 1
                rows.append((self.batch.n_tokens - 1, sequence))
        code = api.llama_decode(self.context, self.batch)
        assert code == 0, f"llama_decode ended with {code}"
        for row, sequence in rows:
            logits = np.ctypeslib.as_array(api.llama_get_logits_ith(self.context, row), shape=(self.vocab,))
            sequence.ids.append(int(logits.argmax()))
        now = time.perf_counter()
        for _, sequence in rows:
            sequence.times.append(now)

    def _put(self, token: int, position: int, place: int) -> None:
        at = self.batch.n_tokens
        self.batch.token[at], self.batch.pos[at], self.batch.logits[at] = token, position, 0
        self.batch.n_seq_id[at], self.batch.seq_id[at][0] = 1, place
        self.batch.n_tokens = at + 1


if __name__ == "__main__":
    serve(lambda settings: Server(settings).answer)
