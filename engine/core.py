"""The engine: requests in, events out, one step at a time."""

import logging
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from msgspec import to_builtins
from torch import Tensor

from engine.adapters.pool import AdapterPool
from engine.cache.pages import PagePool
from engine.cache.prefix import PrefixCache, cache_namespace
from engine.config import EngineConfig
from engine.decoding.sampler import Draw, sample
from engine.decoding.text_stream import TextStream
from engine.metering.costing import run_weight, split_step
from engine.metering.journal import Journal
from engine.protocol import EngineError, Event, FinishReason, Generate, TokenEvent, Usage
from engine.scheduling.admission import Limits, refusal
from engine.scheduling.scheduler import Scheduler
from engine.scheduling.sequence import Batch, Sequence

log = logging.getLogger(__name__)


class Model(Protocol):
    """What the core asks of `engine.models.runner.Runner`."""

    def run(self, batch: Batch) -> Tensor:
        """Compute every run. Returns float32 [sampling runs, vocab], in the order of those runs."""
        ...


class Texts(Protocol):
    """What the core asks of `engine.decoding.tokenizer.Tokenizer`."""

    @property
    def eos_ids(self) -> frozenset[int]: ...

    def stream(self, stop: tuple[str, ...] = ()) -> TextStream: ...


@dataclass(frozen=True, slots=True)
class _Request:
    """One live request: the scheduler's sequence, and what only the core needs."""

    sequence: Sequence
    text: TextStream
    seed: int


class Engine:
    """Everything here belongs to one thread, the step thread.

    No event leaves `step` before the journal has what it says. Each accepted request ends exactly once: by a
    `TokenEvent` with a finish reason, or by an `EngineError`, either one with the usage that is in the journal.
    """

    def __init__(
        self, config: EngineConfig, limits: Limits, model: Model, texts: Texts, adapters: AdapterPool, journal: Journal
    ) -> None:
        self._limits, self._model, self._texts, self._adapters, self._journal = limits, model, texts, adapters, journal
        pool = PagePool(config.pages)
        self._scheduler = Scheduler(
            pool=pool,
            cache=PrefixCache(pool, config.page_size),
            adapters=adapters,
            page_size=config.page_size,
            step_tokens=config.step_tokens,
            max_running=config.max_running,
        )
        self._live: dict[str, _Request] = {}
        self._events: list[Event] = []
        self._journal_fails = False
        self._last_step_was_empty = True

    @property
    def is_idle(self) -> bool:
        """Nothing to do until the next request."""
        return not self._live and not self._events

    @property
    def is_waiting(self) -> bool:
        """Nothing to compute just now: adapters are loading, or the journal's disk does not take more."""
        return self._last_step_was_empty or self._journal_fails

    def add(self, request: Generate) -> EngineError | None:
        """Let a request wait for its turn. Returns why not, where it is refused; then it is not in the journal."""
        if self._journal.knows(request.request_id):
            message = f"request_id {request.request_id} was used before: give every request its own"
            return EngineError(ref=request.request_id, code="duplicate_request", message=message, param="request_id")
        if self._journal_fails:
            message = "the usage journal cannot be written at the moment: try again later"
            return EngineError(request.request_id, code="journal_unavailable", message=message, permanent=False)
        error = refusal(request, self._limits, self._scheduler.waiting_count)
        if error is None:
            self._accept(request)
        return error

    def abort(self, request_id: str) -> None:
        """End a request within this step, as `cancelled`. One that has ended, or never was, is nobody's business."""
        if request_id in self._live:
            self._end(self._live[request_id], "cancelled", "")

    def step(self) -> list[Event]:
        """Plan, run, finish. Returns what there is to say, every word of it journaled."""
        if not self._journal_fails:
            self._fail_unloadable()
            batch = self._scheduler.plan()
            self._last_step_was_empty = not batch.runs
            if batch.runs:
                try:
                    tokens, step_ns = self._run(batch)
                except Exception as error:  # one batch fails, the engine does not
                    self._fail_batch(batch, error)
                else:
                    self._finish(batch, tokens, step_ns)
        return self._commit()

    def shutdown(self) -> list[Event]:
        """End everything that is open, as a restart would. Returns the last events."""
        for request in list(self._live.values()):
            self._end(request, "engine_restart", "")
        self._adapters.close()
        return self._commit()

    def check_integrity(self) -> None:
        """The live requests are the scheduler's sequences, and the journal's open ones."""
        self._scheduler.check_integrity()
        self._adapters.check_integrity()
        known = {s.request_id for s in (*self._scheduler.running, *self._scheduler.waiting)}
        assert known == self._live.keys()
        assert known == self._journal.open_requests.keys()

    def _accept(self, request: Generate) -> None:
        adapter = request.adapter
        sequence = Sequence(
            request_id=request.request_id,
            tenant=request.tenant,
            namespace=cache_namespace(request.namespace, adapter.digest if adapter else None),
            adapter=adapter,
            sampling=request.sampling,
            tokens=list(request.token_ids),
            prompt_len=len(request.token_ids),
            max_len=self._limits.max_len(request),
        )
        seed = request.sampling.seed if request.sampling.seed is not None else secrets.randbits(63)
        self._live[request.request_id] = _Request(sequence, self._texts.stream(request.sampling.stop), seed)
        self._journal.start(request.request_id, request.tenant, adapter.version if adapter else None)
        self._scheduler.add(sequence)
        if adapter is not None:
            self._adapters.prefetch(adapter)

    def _run(self, batch: Batch) -> tuple[dict[str, int | None], int]:
        """The sampled token of each sequence that samples, and the nanoseconds the device was busy."""
        begun = time.perf_counter_ns()
        logits = self._model.run(batch)
        sampling = [run.sequence for run in batch.runs if run.samples]
        draws = [Draw(s.sampling, self._live[s.request_id].seed, len(s.tokens)) for s in sampling]
        tokens = sample(logits, draws) if draws else []
        step_ns = time.perf_counter_ns() - begun
        return {s.request_id: token for s, token in zip(sampling, tokens, strict=True)}, step_ns

    def _finish(self, batch: Batch, tokens: Mapping[str, int | None], step_ns: int) -> None:
        shares = split_step(step_ns, [run_weight(run.start, run.length) for run in batch.runs])
        for run, share in zip(batch.runs, shares, strict=True):
            run.sequence.computed_len += run.length
            run.sequence.device_ns += share
        for run in batch.runs:
            if run.samples:
                self._append(self._live[run.sequence.request_id], tokens[run.sequence.request_id], run.length > 1)
        going_on = [run.sequence for run in batch.runs if run.sequence.request_id in self._live]
        self._journal.progress([(sequence.request_id, _usage(sequence)) for sequence in going_on])

    def _append(self, request: _Request, token: int | None, ended_prompt: bool) -> None:
        if token is None:
            message = "the model's output is not finite for this request: the adapter's weights are unusable"
            self._fail(request, "non_finite_logits", message, permanent=True)
            return
        sequence = request.sequence
        if ended_prompt:
            self._scheduler.remember(sequence)
        sequence.tokens.append(token)
        self._scheduler.charge_sampled(sequence)
        is_eos = token in self._texts.eos_ids
        text = "" if is_eos else request.text.push(token)
        if is_eos or request.text.is_stopped:
            self._end(request, "stop", text, token)
        elif len(sequence.tokens) >= sequence.max_len:
            self._end(request, "length", text, token)
        else:
            self._events.append(TokenEvent(sequence.request_id, text, (token,)))

    def _end(self, request: _Request, reason: FinishReason, text: str, *tokens: int) -> None:
        sequence, usage = request.sequence, _usage(request.sequence)
        if not request.text.is_stopped:
            text += request.text.finish()
            # A stop string may only now have become complete.
            reason = "stop" if request.text.is_stopped else reason
        del self._live[sequence.request_id]
        self._scheduler.end(sequence, keep_pages=True)
        self._journal.end(sequence.request_id, usage, reason)
        _log_end(sequence, usage, reason)
        self._events.append(TokenEvent(sequence.request_id, text, tokens, reason, usage))

    def _fail(self, request: _Request, code: str, message: str, *, permanent: bool) -> None:
        sequence, usage = request.sequence, _usage(request.sequence)
        del self._live[sequence.request_id]
        self._scheduler.end(sequence, keep_pages=False)
        self._journal.end(sequence.request_id, usage, f"error:{code}")
        _log_end(sequence, usage, f"error:{code}")
        param = "adapter" if code == "adapter_unavailable" else None
        self._events.append(EngineError(sequence.request_id, code, message, param, permanent, usage))

    def _fail_batch(self, batch: Batch, error: Exception) -> None:
        log.error("a step failed", exc_info=error, extra={"requests": [r.sequence.request_id for r in batch.runs]})
        for run in batch.runs:
            message = f"the engine failed at this request's step: {type(error).__name__}"
            self._fail(self._live[run.sequence.request_id], "engine_fault", message, permanent=False)

    def _fail_unloadable(self) -> None:
        for digest, error in self._adapters.take_failures().items():
            for sequence in self._scheduler.waiting_for(digest):
                message = f"adapter {sequence.adapter.version if sequence.adapter else ''} cannot be served: {error}"
                self._fail(self._live[sequence.request_id], "adapter_unavailable", message, permanent=error.permanent)

    def _commit(self) -> list[Event]:
        """Journal first, then let the events go. A disk that refuses stops the engine's clock; it forgets nothing."""
        try:
            self._journal.commit()
        except OSError as error:
            if not self._journal_fails:
                log.critical("the journal cannot be written; holding all answers until it can", exc_info=error)
            self._journal_fails = True
            return []
        self._journal_fails = False
        events, self._events = self._events, []
        return events


def _log_end(sequence: Sequence, usage: Usage, reason: str) -> None:
    version = sequence.adapter.version if sequence.adapter else None
    fields = {"request_id": sequence.request_id, "tenant": sequence.tenant, "adapter_version": version}
    log.info("request ended", extra={**fields, "finish_reason": reason, **to_builtins(usage)})


def _usage(sequence: Sequence) -> Usage:
    """A sequence that never ran has used nothing, not even its prompt."""
    if sequence.metered_cached_len is None:
        return Usage(prompt_tokens=0, cached_tokens=0, completion_tokens=0, device_ns=0)
    return Usage(sequence.prompt_len, sequence.metered_cached_len, sequence.completion_len, sequence.device_ns)
