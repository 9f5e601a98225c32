"""transformers with PEFT as a server: static batches, each row with its adapter (`adapter_names=`). Runs in its own
environment: `python -m benchmarks.comparison.workers.peft_worker SOCKET SETTINGS`."""

import time
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from peft import PeftModel
from transformers import AutoModelForCausalLM, LogitsProcessor, LogitsProcessorList

from benchmarks.comparison.workers.wire import Json, serve

BASE = "__base__"  # what PEFT calls it in a mixed batch


class Clock(LogitsProcessor):
    """Notes when the logits of each step are there, and leaves them as they are."""

    def __init__(self) -> None:
        self.times: list[float] = []

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        self.times.append(time.perf_counter())
        return scores


def load(settings: Json, dtype: torch.dtype) -> Any:
    """The model with every adapter. settings: model, adapters (name -> folder), threads."""
    torch.set_num_threads(settings["threads"])
    model: Any = AutoModelForCausalLM.from_pretrained(settings["model"], dtype=dtype).eval()
    model.generation_config.eos_token_id = None  # answers do not end early
    model.generation_config.pad_token_id = 0
    for name, folder in settings["adapters"].items():
        if isinstance(model, PeftModel):
            model.load_adapter(folder, adapter_name=name)
        else:
            model = PeftModel.from_pretrained(model, folder, adapter_name=name).eval()
    return model


class Server:
    def __init__(self, settings: Json) -> None:
        self.model = load(settings, torch.bfloat16)

    @torch.inference_mode()
    def answer(self, job: Json) -> Json:
        """Requests that wait for others are a batch of their own behind them."""
        asks = job["asks"]
        answers: list[Json] = [{} for _ in asks]
        for waits in (False, True):
            places = [place for place, ask in enumerate(asks) if (ask["after"] is not None) is waits]
            if places:
                for place, found in zip(places, self._batch([asks[place] for place in places]), strict=True):
                    answers[place] = found
        return {"answers": answers}

    def _batch(self, asks: list[Json]) -> list[Json]:
        longest = max(len(ask["prompt"]) for ask in asks)
        pads = [longest - len(ask["prompt"]) for ask in asks]
        ids = torch.tensor([[0] * pad + ask["prompt"] for pad, ask in zip(pads, asks, strict=True)])
        mask = torch.tensor([[0] * pad + [1] * (longest - pad) for pad in pads])
        clock, asked = Clock(), time.perf_counter()
        with self._switched({ask["adapter"] for ask in asks}):
            found = self.model.generate(
                input_ids=ids, attention_mask=mask, do_sample=False, max_new_tokens=max(ask["answer"] for ask in asks),
                logits_processor=LogitsProcessorList([clock]), **self._named(asks),
            )  # fmt: skip
        return [
            {"asked": asked, "times": clock.times[: ask["answer"]], "ids": row[longest:][: ask["answer"]].tolist()}
            for ask, row in zip(asks, found, strict=True)
        ]

    def _switched(self, names: set[str | None]) -> AbstractContextManager[Any]:
        """For a batch of one kind, which costs less than a mixed one."""
        if not isinstance(self.model, PeftModel) or len(names) > 1:
            return nullcontext()
        (name,) = names
        if name is None:
            context: AbstractContextManager[Any] = self.model.disable_adapter()
            return context
        self.model.set_adapter(name)
        return nullcontext()

    def _named(self, asks: list[Json]) -> Json:
        names = [ask["adapter"] or BASE for ask in asks]
        return {"adapter_names": names} if len({*names}) > 1 else {}


if __name__ == "__main__":
    serve(lambda settings: Server(settings).answer)
