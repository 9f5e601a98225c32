"""One live request: its choices or beams, what it has used, and when."""

import logging
from dataclasses import dataclass, field

import torch
from msgspec import to_builtins
from torch import Tensor

from engine.choice import Choice
from engine.decoding.logprobs import Scored
from engine.decoding.shaping import shapes
from engine.protocol import Generate, Sampling, Usage
from engine.scheduling.sequence import Run, Sequence
from engine.search import Search

log = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class Request:
    """lead: the sequence that computes the prompt. running: the choices whose sequence the scheduler has; the others
    have ended, or have yet to fork from the lead. search: of beams, which become choices when it is over.

    Times are the engine's clock's. deadline: None = none. started_at: its first step, None before it.
    prompt_scored: of the prompt's tokens from the second on. pooled: float64 [hidden size], sum so far. embedding: its
    end, little-endian float32. is_held_back: nothing is told before all choices have ended. is_read_only: the prompt is
    computed and nothing said. is_plain: a decoding row's token is drawn from its logits alone. top: of the likeliest
    tokens, how many are scored beside each that comes; None: not even that one. energy_uj, prefill_uj: None before a
    step has told; lacks_energy: one could not.
    """

    asked: Generate
    lead: Sequence
    arrived_at: float
    deadline: float | None
    choices: list[Choice]
    search: Search | None = None
    running: dict[Sequence, Choice] = field(default_factory=dict)
    started_at: float | None = None
    completion_tokens: int = 0
    device_ns: int = 0
    prefill_ns: int = 0
    energy_uj: int | None = None
    prefill_uj: int | None = None
    lacks_energy: bool = False
    prompt_scored: list[Scored] = field(default_factory=list)
    is_prompt_told: bool = False
    pooled: Tensor | None = None
    embedding: bytes | None = None
    sampling: Sampling = field(init=False)
    is_held_back: bool = field(init=False)
    is_read_only: bool = field(init=False)
    is_plain: bool = field(init=False)
    top: int | None = field(init=False)

    def __post_init__(self) -> None:
        self.sampling = sampling = self.asked.sampling
        self.is_held_back = self.search is not None or sampling.best_of > sampling.n
        self.is_read_only = sampling.max_tokens == 0
        self.top = 0 if sampling.logprobs is None and self.is_held_back else sampling.logprobs
        scores = self.top is not None or sampling.prompt_logprobs is not None
        has_say = sampling.grammar is not None or shapes(sampling)
        self.is_plain = not (self.is_read_only or scores or has_say)

    @property
    def request_id(self) -> str:
        return self.asked.request_id

    @property
    def version(self) -> str | None:
        """Of its adapter; None: the base model."""
        return self.asked.adapter.version if self.asked.adapter else None

    @property
    def deadline_s(self) -> float:
        """Seconds that it was given."""
        return self.asked.deadline_s or 0.0

    @property
    def has_run(self) -> bool:
        return self.lead.metered_cached_len is not None

    @property
    def sequences(self) -> list[Sequence]:
        """Those that the scheduler has."""
        return list(self.running) if self.search is None else self.search.sequences

    @property
    def usage(self) -> Usage:
        """A request that never ran has used nothing, not even its prompt."""
        cached_len = self.lead.metered_cached_len
        if cached_len is None:
            return Usage(prompt_tokens=0, cached_tokens=0, completion_tokens=0, device_ns=0)
        energy = (None, None) if self.lacks_energy else (self.energy_uj, self.prefill_uj)
        time = (self.device_ns, self.prefill_ns)
        return Usage(self.lead.prompt_len, cached_len, self.completion_tokens, *time, *energy)

    def take_energy(self, spent_uj: int | None, of_prompt_uj: int) -> None:
        """A step's share in microjoules; None: it is not known."""
        if spent_uj is None:
            self.lacks_energy = True
        else:
            self.energy_uj = (self.energy_uj or 0) + spent_uj
            self.prefill_uj = (self.prefill_uj or 0) + of_prompt_uj

    def drawing(self, sequence: Sequence) -> list[Choice]:
        """Who draws from the row of a sequence's last token: its own choice; after the prompt, all of them."""
        if len(self.choices) > 1 and sequence is self.lead and not sequence.completion_len:
            return self.choices
        return [self.running[sequence]]

    def take_scores(self, run: Run, scored: list[Scored]) -> None:
        """Of the tokens that follow the rows of a run of the prompt."""
        self.prompt_scored += scored
        self._read_up_to(run)

    def take_pooled(self, run: Run, pooled: Tensor) -> None:
        """The sum of the rows of a run of the prompt."""
        self.pooled = pooled if self.pooled is None else self.pooled + pooled
        self._read_up_to(run)
        if self.lead.rows_from is None:
            count = self.lead.prompt_len if self.asked.pooling == "mean" else 1
            self.embedding = (self.pooled / count).to("cpu", torch.float32).numpy().astype("<f4").tobytes()

    def _read_up_to(self, run: Run) -> None:
        end = run.start + run.length
        self.lead.rows_from = end if end < self.lead.prompt_len else None

    def log_end(self, usage: Usage, reason: str) -> None:
        fields = {"request_id": self.request_id, "tenant": self.asked.tenant, "adapter_version": self.version}
        log.info("request ended", extra={**fields, "finish_reason": reason, **to_builtins(usage)})
