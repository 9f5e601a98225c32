"""Whether a server answered as it should: with each request's own adapter."""

from pathlib import Path
from typing import Any

from benchmarks.comparison.work import Answer, Job
from benchmarks.comparison.worker import Worker

# Logits. FP8 keys and values move some right answers beyond this; those are told apart by asking which model explains
# them best. Of 32 answers of the engine (8 adapters, 4 prompts) none was refused, and 223 of 224 swaps were found.
SURE = 0.2
JUDGE_SECONDS = 120.0


class Referee:
    """Scores answers with the model in fp32, one adapter merged at a time (transformers and PEFT)."""

    def __init__(self, python: Path, settings: dict[str, Any], logs: Path) -> None:
        self._worker = Worker(python, "reference_worker", settings, logs / "reference_worker.log")
        self._known: dict[tuple[str | None, tuple[int, ...], tuple[int, ...]], float] = {}

    def faults(self, job: Job, answers: list[Answer]) -> str | None:
        """What is wrong with them, or None. Raises PeerFailed when the reference itself does not answer."""
        models, wrong = [*dict.fromkeys(ask.adapter for ask in job.asks)], list[str]()
        for ask, answer in zip(job.asks, answers, strict=True):
            if len(answer.ids) != ask.answer:
                return f"{len(answer.ids)} tokens where {ask.answer} were asked for"
            if not self._is_own(ask.adapter, ask.prompt, answer.ids, models):
                wrong.append(ask.adapter or "base")
        if not wrong:
            return None
        return f"wrong answers for {len({*wrong})} of {len(models)} models, such as {wrong[0]}"

    def _is_own(
        self, adapter: str | None, prompt: tuple[int, ...], answer: tuple[int, ...], models: list[str | None]
    ) -> bool:
        """Whether no other model of the job, nor the base, would rather have said this."""
        own = self.gap(adapter, prompt, answer)
        return own <= SURE or all(own <= self.gap(other, prompt, answer) for other in (*models, None))

    def gap(self, adapter: str | None, prompt: tuple[int, ...], answer: tuple[int, ...]) -> float:
        """By how much the answer's tokens are below the best ones, in logits, on average."""
        key = (adapter, prompt, answer)
        if key not in self._known:
            asked = {"adapter": adapter, "texts": [[prompt, answer]]}
            self._known[key] = self._worker.call(asked, JUDGE_SECONDS)["gaps"][0]
        return self._known[key]

    def stop(self) -> None:
        self._worker.stop()
