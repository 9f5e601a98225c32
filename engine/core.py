"""The engine: requests in, events out, one step at a time."""

import logging
import secrets
import time
from collections.abc import Callable, Mapping
from typing import Protocol

from torch import Tensor

from engine.adapters.pool import AdapterPool
from engine.cache.pages import PagePool
from engine.cache.prefix import PrefixCache, cache_namespace
from engine.config import EngineConfig
from engine.decoding.constraint import Constraint
from engine.decoding.sampler import Draw, sample
from engine.decoding.text_stream import TextStream
from engine.metering.costing import run_weight, split_step
from engine.metering.journal import Journal
from engine.metering.metrics import GAUGE_SECONDS, Metrics, Reading
from engine.protocol import EngineError, Event, FinishReason, Generate, Grammar, TokenEvent
from engine.request import Request
from engine.scheduling.admission import Limits, refusal
from engine.scheduling.overload import Line, ServiceRate, Shedding
from engine.scheduling.scheduler import Scheduler
from engine.scheduling.sequence import Batch, Sequence

log = logging.getLogger(__name__)


class Model(Protocol):
    """What the core asks of `engine.models.runner.Runner`."""

    def run(self, batch: Batch) -> Tensor:
        """Compute every run. Returns float32 [rows of all runs, vocab], in their order."""
        ...


class Texts(Protocol):
    """What the core asks of `engine.decoding.tokenizer.Tokenizer`."""

    @property
    def eos_ids(self) -> frozenset[int]: ...

    def stream(self, stop: tuple[str, ...] = ()) -> TextStream: ...


class Engine:
    """Everything here belongs to one thread, the step thread.

    No event leaves `step` before the journal has what it says. Each accepted request ends exactly once: by a
    `TokenEvent` with a finish reason, or by an `EngineError`, either one with the usage that is in the journal.
    constraints: what holds a choice to its grammar, raising ConstraintRefused; None: requests with one are refused.
    clock: seconds, for deadlines and metrics.
    """

    def __init__(
        self,
        config: EngineConfig,
        limits: Limits,
        model: Model,
        texts: Texts,
        adapters: AdapterPool,
        journal: Journal,
        *,
        constraints: Callable[[Grammar], Constraint] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.metrics = Metrics()
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
        self._constraints, self._clock = constraints, clock
        self._shedding, self._rate = Shedding(config.max_waiting, config.max_waiting_per_tenant), ServiceRate()
        self._live: dict[str, Request] = {}
        self._events: list[Event] = []
        self._journal_fails = False
        self._is_draining = False
        self._gauges_read_at = -GAUGE_SECONDS
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
        error = self._unjournalable(request) or refusal(request, self._limits) or self._shed(request)
        if error is None:
            self._accept(request)
        else:
            self.metrics.refused(error.code)
        return error

    def abort(self, request_id: str) -> None:
        """End a request within this step, as `cancelled`. One that has ended, or never was, is nobody's business."""
        if request_id in self._live:
            self._end(self._live[request_id], "cancelled", "")

    def step(self) -> list[Event]:
        """Plan, run, finish. Returns what there is to say, every word of it journaled."""
        if not self._journal_fails:
            self._fail_unloadable()
            self._fail_overdue()
            batch = self._scheduler.plan()
            self._last_step_was_empty = not batch.runs
            if batch.runs:
                self._work(batch)
        events = self._commit()
        self._read_gauges()
        return events

    def drain(self) -> None:
        """Take no more requests and end those that never ran; what has begun goes on until `shutdown`."""
        self._is_draining = True
        for request in [request for request in self._live.values() if not request.has_run]:
            self._end(request, "engine_restart", "")

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

    def _unjournalable(self, request: Generate) -> EngineError | None:
        if self._journal.knows(request.request_id):
            message = f"request_id {request.request_id} was used before: give every request its own"
            return EngineError(ref=request.request_id, code="duplicate_request", message=message, param="request_id")
        if self._journal_fails:
            message = "the usage journal cannot be written at the moment: try again later"
            return EngineError(request.request_id, code="journal_unavailable", message=message, permanent=False)
        return None

    def _shed(self, request: Generate) -> EngineError | None:
        """Why not now; None where it may wait for its turn."""
        if self._is_draining:
            message = "the engine is stopping: send the request to another one, or again when it is back"
            return EngineError(request.request_id, code="engine_draining", message=message, permanent=False)
        waits = self._scheduler
        line = Line(waits.waiting_count, waits.waiting_of(request.tenant), waits.tenants_waiting)
        return self._shedding.refusal(request, line, self._rate)

    def _accept(self, request: Generate) -> None:
        adapter = request.adapter
        is_long = self._limits.is_long(request)
        sequence = Sequence(
            request_id=request.request_id,
            tenant=request.tenant,
            namespace=cache_namespace(request.namespace, adapter.digest if adapter else None, is_long=is_long),
            base_namespace=cache_namespace(request.namespace, None, is_long=is_long),
            adapter=adapter,
            sampling=request.sampling,
            tokens=list(request.token_ids),
            prompt_len=len(request.token_ids),
            max_len=self._limits.max_len(request),
            weight=request.tenant_weight,
        )
        seed = request.sampling.seed if request.sampling.seed is not None else secrets.randbits(63)
        now = self._clock()
        deadline = None if request.deadline_s is None else now + request.deadline_s
        text = self._texts.stream(request.sampling.stop)
        self._live[request.request_id] = Request(sequence, text, seed, now, deadline)
        self._journal.start(request.request_id, request.tenant, adapter.version if adapter else None)
        self._scheduler.add(sequence)
        if adapter is not None:
            self._adapters.prefetch(adapter)

    def _work(self, batch: Batch) -> None:
        """Run the batch and take in what it yields. Its time is shared out also where it fails."""
        self._note_starts(batch)
        begun = time.perf_counter_ns()
        tokens, failure = dict[str, int | None](), None
        try:
            tokens = self._run(batch)
        except Exception as error:  # one batch fails, the engine does not
            failure = error
        self._share_out(batch, time.perf_counter_ns() - begun)
        if failure is None:
            self._finish(batch, tokens)
        else:
            self._fail_batch(batch, failure)

    def _note_starts(self, batch: Batch) -> None:
        self.metrics.batch_tokens.observe(batch.tokens)
        self.metrics.batch_sequences.observe(len(batch.runs))
        now = self._clock()
        for request in [self._live[run.sequence.request_id] for run in batch.runs]:
            if request.started_at is None:
                request.started_at = now
                self.metrics.queue_time.observe(now - request.arrived_at)
                self.metrics.prompt_lengths.observe(request.sequence.prompt_len)

    def _run(self, batch: Batch) -> dict[str, int | None]:
        """The sampled token of each sequence that samples."""
        logits = self._model.run(batch)
        sampling = [run.sequence for run in batch.runs if run.samples]
        draws = [Draw(s.sampling, self._live[s.request_id].seed, len(s.tokens)) for s in sampling]
        tokens = sample(logits, draws) if draws else []
        return {s.request_id: token for s, token in zip(sampling, tokens, strict=True)}

    def _share_out(self, batch: Batch, step_ns: int) -> None:
        """Each sequence's share of the device's time; the shares sum to all of it."""
        self._rate.worked(step_ns)
        self.metrics.step_time.observe(step_ns / 1e9)
        shares = split_step(step_ns, [run_weight(run.start, run.length) for run in batch.runs])
        for run, share in zip(batch.runs, shares, strict=True):
            run.sequence.device_ns += share
            self.metrics.device_time(run.sequence.tenant, share / 1e9)

    def _finish(self, batch: Batch, tokens: Mapping[str, int | None]) -> None:
        now = self._clock()
        for run in batch.runs:
            run.sequence.computed_len += run.length
        for run in batch.runs:
            if run.samples:
                request = self._live[run.sequence.request_id]
                self._time_token(request, now)
                self._append(request, tokens[run.sequence.request_id], run.length > 1)
        going_on = [self._live[run.sequence.request_id] for run in batch.runs if run.sequence.request_id in self._live]
        self._journal.progress([(request.sequence.request_id, request.usage) for request in going_on])

    def _time_token(self, request: Request, now: float) -> None:
        if request.spoke_at is None:
            self.metrics.ttft.observe(now - request.arrived_at)
        else:
            self.metrics.itl.observe(now - request.spoke_at)
        request.spoke_at = now

    def _append(self, request: Request, token: int | None, ended_prompt: bool) -> None:
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

    def _end(self, request: Request, reason: FinishReason, text: str, *tokens: int) -> None:
        if not request.text.is_stopped:
            text += request.text.finish()
            # A stop string may only now have become complete.
            reason = "stop" if request.text.is_stopped else reason
        self._close(request, reason, keep_pages=True)
        self._events.append(TokenEvent(request.sequence.request_id, text, tokens, reason, request.usage))

    def _fail(self, request: Request, code: str, message: str, *, permanent: bool) -> None:
        self._close(request, f"error:{code}", keep_pages=False)
        param = "adapter" if code == "adapter_unavailable" else None
        self._events.append(EngineError(request.sequence.request_id, code, message, param, permanent, request.usage))

    def _close(self, request: Request, reason: str, *, keep_pages: bool) -> None:
        sequence, usage = request.sequence, request.usage
        del self._live[sequence.request_id]
        self._scheduler.end(sequence, keep_pages=keep_pages)
        self._journal.end(sequence.request_id, usage, reason)
        request.log_end(usage, reason)
        self.metrics.ended(reason, usage.prompt_tokens, usage.cached_tokens, usage.completion_tokens)
        if request.has_run:
            self._rate.served()

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

    def _fail_overdue(self) -> None:
        now = self._clock()
        for request in [r for r in self._live.values() if r.deadline is not None and r.deadline <= now]:
            message = f"the request did not end within its deadline_s of {request.deadline_s:g} s"
            self._fail(request, "deadline_exceeded", message, permanent=False)

    def _read_gauges(self) -> None:
        now = self._clock()
        if now < self._gauges_read_at + GAUGE_SECONDS and not self.is_idle:
            return
        self._gauges_read_at = now
        scheduler, adapters = self._scheduler, self._adapters
        self.metrics.preempted(scheduler.preemptions)
        self.metrics.read(
            Reading(
                running=len(scheduler.running),
                waiting=scheduler.waiting_count,
                pages=scheduler.pages,
                slots_in_use=adapters.slots_in_use,
                slots=adapters.slots,
                adapters=adapters.tiers,
            )
        )

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
