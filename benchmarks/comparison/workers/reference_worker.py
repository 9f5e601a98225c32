"""What is right: the model in fp32 with one adapter merged into its weights, from transformers and PEFT. Runs in their
environment, like `peft_worker`."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from peft import PeftModel

from benchmarks.comparison.workers.peft_worker import load
from benchmarks.comparison.workers.wire import Json, serve


class Reference:
    """Each call names an `adapter` (or None), and `texts`: pairs of prompt and answer."""

    def __init__(self, settings: Json) -> None:
        self.model = load(settings, torch.float32)

    @torch.inference_mode()
    def answer(self, call: Json) -> Json:
        """gaps: for each text, by how much the logits of its answered tokens are below the best ones, on average."""
        with self._merged(call["adapter"]) as model:
            return {"gaps": [self._gap(model, prompt, answer) for prompt, answer in call["texts"]]}

    @staticmethod
    def _gap(model: Any, prompt: list[int], answer: list[int]) -> float:
        logits = model(torch.tensor([prompt + answer])).logits[0, len(prompt) - 1 : -1].float()
        said = logits.gather(1, torch.tensor(answer)[:, None])[:, 0]
        return float((logits.max(1).values - said).mean())

    @contextmanager
    def _merged(self, adapter: str | None) -> Iterator[Any]:
        if not isinstance(self.model, PeftModel):
            yield self.model
        elif adapter is None:
            with self.model.disable_adapter():
                yield self.model
        else:
            self.model.set_adapter(adapter)
            self.model.merge_adapter([adapter])
            try:
                yield self.model
            finally:
                self.model.unmerge_adapter()


if __name__ == "__main__":
    serve(lambda settings: Reference(settings).answer)
