"""Whether a server answered as it should: with each request's own adapter."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.comparison.work import Answer, Job
from benchmarks.comparison.worker import Worker

# Logits. FP8 keys and values move right answers of these random adapters by up to 0.7, so an answer is wrong only where
# another model explains it better, and by more than this. Of 96 answers of the engine (32 adapters, 6 tokens each) none
# was refused so, and 3,049 of their 3,072 swaps were found.
SURE = 0.2
JUDGE_SECONDS = 120.0


class Text(NamedTuple):
    """adapter: the one that was asked for, None = the base. prompt, answer: token ids."""

    adapter: str | None
    prompt: tuple[int, ...]
    answer: tuple[int, ...]


class Referee:
    """Scores answers with the model in fp32, one adapter merged at a time (transformers and PEFT)."""

    def __init__(self, python: Path, settings: dict[str, Any], logs: Path) -> None:
        self._worker = Worker(python, "reference_worker", settings, logs / "reference_worker.log")

    def faults(self, job: Job, answers: list[Answer]) -> str | None:
        """What is wrong with them, or None. Raises PeerFailed when the reference itself does not answer."""
        for ask, answer in zip(job.asks, answers, strict=True):
            if len(answer.ids) != ask.answer:
                return f"{len(answer.ids)} tokens where {ask.answer} were asked for"
        texts = [Text(a.adapter, a.prompt, tuple(b.ids)) for a, b in zip(job.asks, answers, strict=True)]
        if not (wrong := [text.adapter for text in self._wrong(texts)]):
            return None
        asked = {text.adapter for text in texts}
        return f"wrong answers for {len({*wrong})} of {len(asked)} models, such as {wrong[0] or 'base'}"

    def _wrong(self, texts: Sequence[Text]) -> list[Text]:
        """Those that another model of the job, or the base, would much rather have said."""
        models = dict.fromkeys([None, *(text.adapter for text in texts)])
        own = {
            text: gap
            for model in models
            for text, gap in self._gaps(model, [text for text in texts if text.adapter == model])
        }
        doubted = [text for text, gap in own.items() if gap > SURE]
        best = dict(own)
        for model in models:
            best |= {text: min(gap, best[text]) for text, gap in self._gaps(model, doubted)}
        return [text for text in doubted if own[text] > best[text] + SURE]

    def _gaps(self, adapter: str | None, texts: Sequence[Text]) -> list[tuple[Text, float]]:
        """By how much the answers' tokens are below this model's best ones, in logits, on average."""
        if not texts:
            return []
        asked = {"adapter": adapter, "texts": [[text.prompt, text.answer] for text in texts]}
        return list(zip(texts, self._worker.call(asked, JUDGE_SECONDS)["gaps"], strict=True))

    def stop(self) -> None:
        self._worker.stop()
