"""Whether a server answered as it should: with each request's own adapter."""

from pathlib import Path
from typing import Any

from benchmarks.comparison.work import Answer, Job
from benchmarks.comparison.worker import Worker

# Logits. bf16 sums and FP8 keys and values move them by less; another adapter's answer is off by more.
TOLERANCE = 1.0
JUDGE_SECONDS = 120.0


class Referee:
    """Scores answers with the model in fp32, one adapter merged at a time (transformers and PEFT)."""

    def __init__(self, python: Path, settings: dict[str, Any], logs: Path) -> None:
        self._worker = Worker(python, "reference_worker", settings, logs / "reference_worker.log")
        self._known: dict[tuple[str | None, tuple[int, ...], tuple[int, ...]], float] = {}

    def faults(self, job: Job, answers: list[Answer]) -> str | None:
        """What is wrong with them, or None. Raises PeerFailed when the reference itself does not answer."""
        wrong: dict[str, float] = {}
        for ask, answer in zip(job.asks, answers, strict=True):
            if len(answer.ids) != ask.answer:
                return f"{len(answer.ids)} tokens where {ask.answer} were asked for"
            gap = self.gap(ask.adapter, ask.prompt, answer.ids)
            if gap > TOLERANCE:
                wrong[ask.adapter or "base"] = gap
        if not wrong:
            return None
        names = len({ask.adapter for ask in job.asks})
        return f"wrong answers for {len(wrong)} of {names} models, such as {next(iter(wrong))}"

    def gap(self, adapter: str | None, prompt: tuple[int, ...], answer: tuple[int, ...]) -> float:
        """By how much the least likely token of the answer is below the best one, in logits."""
        key = (adapter, prompt, answer)
        if key not in self._known:
            asked = {"adapter": adapter, "texts": [[prompt, answer]]}
            self._known[key] = self._worker.call(asked, JUDGE_SECONDS)["gaps"][0]
        return self._known[key]

    def stop(self) -> None:
        self._worker.stop()
