"""The engine: requests in, events out, one step at a time."""

import logging
import time
from collections.abc import Callable

import msgspec

from engine.adapters.placement import place
from engine.adapters.pool import AdapterPool
from engine.answers import held_back_events, token_event
from engine.cache.pages import PagePool
from engine.cache.prefix import PrefixCache
from engine.choice import Choice, Taken
from engine.config import EngineConfig
from engine.decoding.constraint import Constraint, ConstraintRefused
from engine.decoding.logprobs import Scored
from engine.gauges import Gauges
from engine.harvest import Harvest, Pick, harvest
from engine.intake import Intake, Texts
from engine.metering.energy import EnergyMeter, StepEnergy
from engine.metering.journal import Journal
from engine.metering.metrics import Metrics
from engine.overlap import Device, Model, Overlap
from engine.protocol import EngineError, Event, FinishReason, Generate, Grammar, Pin, Tier, Usage
from engine.request import Request
from engine.scheduling.admission import Limits, refusal, turn_of
from engine.scheduling.overload import Line, ServiceRate, Shedding
from engine.scheduling.scheduler import Scheduler
from engine.scheduling.sequence import Batch, Run, Sequence
from engine.spans import Spans
from engine.speculation.speculator import Speculator
from engine.step_account import StepAccount

log = logging.getLogger(__name__)

# Steps that may follow each other while nobody drafts, before the speculator is asked again.
UNASKED = 8


class Engine:
    """Everything here belongs to one thread, the step thread.

    No event leaves `step` before the journal has what it says. Each accepted request ends exactly once: by a
    `TokenEvent` with a finish reason, or by an `EngineError`, either one with the usage that is in the journal.
    constraints: what holds a choice to its grammar, raising ConstraintRefused; None: requests with one are refused.
    spans: where each request's way is told; None: nowhere.
    speculator: drafts tokens ahead; None: every token takes a step. device: what can begin a step while another one
    runs; None: each step ends before the next is planned. energy: None: nobody counts it. clock: seconds.
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
        speculator: Speculator | None = None,
        device: Device | None = None,
        spans: Spans | None = None,
        energy: EnergyMeter | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.metrics = Metrics()
        self._limits, self._model, self._piece = limits, model, texts.piece
        self._adapters, self._journal = adapters, journal
        self._intake = Intake(limits, texts, constraints)
        pool = PagePool(config.pages)
        self._scheduler = Scheduler(
            pool=pool,
            cache=PrefixCache(pool, config.page_size, limits.window),
            adapters=adapters,
            page_size=config.page_size,
            step_tokens=config.step_tokens,
            max_running=config.max_running,
        )
        self._clock, self._spans, self._speculator = clock, spans, speculator or Speculator(None)
        self._overlap = Overlap(device, self._scheduler)
        self._shedding, self._rate = Shedding(config.max_waiting, config.max_waiting_per_tenant), ServiceRate()
        self._live: dict[str, Request] = {}
        self._account = StepAccount(self._live, self.metrics, self._rate, spans, clock, StepEnergy(energy))
        self._events: list[Event] = []
        self._journal_fails = self._is_draining = False
        self._gauges = Gauges(self.metrics, self._scheduler, adapters)
        self._last_step_was_empty = True

    @property
    def is_idle(self) -> bool:
        """Nothing to do until the next request."""
        return not (self._live or self._events or self._overlap.is_flying)

    @property
    def is_resting(self) -> bool:
        """Idle, and no pinned adapter is on its way to a slot."""
        return self.is_idle and not self._adapters.is_settling

    @property
    def is_waiting(self) -> bool:
        """Nothing to compute just now: adapters are loading, or the journal's disk does not take more."""
        return self._last_step_was_empty or self._journal_fails

    def add(self, request: Generate) -> EngineError | None:
        """Let a request wait for its turn. Returns why not, where it is refused; then it is not in the journal."""
        error = self._unjournalable(request) or refusal(request, self._limits) or self._shed(request)
        error = error or self._accept(request)
        if error is not None:
            self.metrics.refused(error.code)
        return error

    def abort(self, request_id: str) -> None:
        """End a request within this step, as `cancelled`. One that has ended, or never was, is nobody's business."""
        if request_id in self._live:
            self._end(self._live[request_id], "cancelled")

    def place(self, asked: Pin) -> Event:
        """Pin or unpin an adapter; where it is now."""
        return place(self._adapters, self._limits.max_rank, asked)

    @property
    def pinned(self) -> tuple[str, ...]:
        """Digests of adapters that `place` pinned; any thread may ask."""
        return self._adapters.kept

    def tier_of(self, digest: str) -> Tier:
        """Where an adapter is now; any thread may ask."""
        return self._adapters.tier_of(digest)

    def step(self) -> list[Event]:
        """Plan, run, finish. Returns what there is to say, every word of it journaled.

        Where steps overlap, the one that ends was begun by an earlier call, and the next is begun before it ends.
        """
        if not self._journal_fails:
            self._fail_unloadable()
            self._fail_overdue()
            if self._overlap.is_flying or self._take_off():
                self._fly_on()
        events = self._commit()
        self._gauges.read(self._clock(), is_idle=self.is_idle)
        return events

    def drain(self) -> None:
        """Take no more requests and end those that never ran; what has begun goes on until `shutdown`."""
        self._is_draining = True
        for request in [request for request in self._live.values() if not request.has_run]:
            self._end(request, "engine_restart")

    def shutdown(self) -> list[Event]:
        """End everything that is open, as a restart would. Returns the last events."""
        for request in list(self._live.values()):
            self._end(request, "engine_restart")
        self._overlap.settle()
        self._adapters.close()
        return self._commit()

    def check_integrity(self) -> None:
        """The live requests have the scheduler's sequences, and are the journal's open ones."""
        self._scheduler.check_integrity()
        self._adapters.check_integrity()
        self._overlap.check_integrity()
        known = {*self._scheduler.running, *self._scheduler.waiting} - self._overlap.ended
        assert known == {sequence for request in self._live.values() for sequence in request.sequences}
        assert {sequence.request_id for sequence in known} == self._live.keys()
        assert self._live.keys() == self._journal.open_requests.keys()

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
        line = Line(waits.waiting_count, waits.waiting_of(turn_of(request)), waits.tenants_waiting)
        return self._shedding.refusal(request, line, self._rate)

    def _accept(self, asked: Generate) -> EngineError | None:
        """Why its grammar is refused; None where it waits now."""
        try:
            request = self._intake.request(asked, self._clock())
        except ConstraintRefused as refused:
            return EngineError(asked.request_id, code="invalid_grammar", message=str(refused), param="grammar")
        self._live[asked.request_id] = request
        self._journal.start(asked.request_id, asked.tenant, request.version)
        if self._spans:
            self._spans.accepted(asked)
        self._scheduler.add(request.lead)
        if asked.adapter is not None:
            self._adapters.prefetch(asked.adapter)
        return None

    def _take_off(self) -> bool:
        """Plan a step, and do all of it, or only begin it. True: it is under way."""
        batch = self._scheduler.plan()
        self._last_step_was_empty = not batch.runs
        return bool(batch.runs) and self._work(batch)

    def _fly_on(self) -> None:
        """Begin the next step where it is known, then end the one under way."""
        is_due = self._speculator.is_on and self._overlap.followed >= UNASKED
        following = None if is_due else self._overlap.follow(self._live)
        if following is not None:
            self._account.begin(following)
        landed = self._overlap.land()
        if landed.batch.runs:
            self._take_in(landed.batch, landed.got, landed.step_ns, landed.failure, was_planned=landed.was_planned)
        else:
            self._account.landed_for_nobody()

    def _work(self, batch: Batch) -> bool:
        """Run the batch and take in what it yields. True: it is only under way."""
        self._account.begin(batch)
        begun = time.perf_counter_ns()
        got, failure = Harvest(), None
        try:
            drafts = self._speculator.drafts(batch, self._seed_of)
            if not drafts and self._overlap.begin(batch, self._live, begun):
                return True
            batch = self._scheduler.widen(batch, drafts) if drafts else batch
            got = harvest(batch, self._model.run(batch), self._live)
        except Exception as error:  # one batch fails, the engine does not
            failure = error
        self._take_in(batch, got, time.perf_counter_ns() - begun, failure)
        return False

    def _take_in(
        self, batch: Batch, got: Harvest, step_ns: int, failure: Exception | None, *, was_planned: bool = True
    ) -> None:
        """What a step yields. Its time is shared out also where it fails. was_planned: the speculator was asked."""
        self._account.end(batch, step_ns)
        if failure is None:
            if self._speculator.is_on and was_planned:
                self._speculator.learn(batch, got.came, step_ns / 1e9, self.metrics.drafted)
            self._finish(batch, got)
        else:
            self._fail_batch(batch, failure)

    def _seed_of(self, sequence: Sequence) -> int:
        return self._live[sequence.request_id].running[sequence].seed

    def _finish(self, batch: Batch, got: Harvest) -> None:
        now = self._clock()
        for run in batch.runs:
            run.sequence.computed_len += run.length - len(run.draft)
        for request, why in got.refused.items():
            self._fail(request, "invalid_grammar", why, permanent=True, param="grammar")
        for request in got.broken.keys() - got.refused.keys():
            self._fail_broken(request)
        self._read_prompts(got)
        self._fork_choices(got)
        for pick in got.picks:
            if pick.request.request_id in self._live and pick.choice.reason is None:
                self._append(pick, now)
        for run in [run for run in batch.runs if run.draft]:
            self._scheduler.narrow(run.sequence)
        for request, runs in got.searches.items():
            if request.request_id in self._live:
                self._search_on(request, runs)
        used = {run.sequence.request_id: None for run in batch.runs}
        self._journal.progress([(name, self._live[name].usage) for name in used if name in self._live])

    def _read_prompts(self, got: Harvest) -> None:
        """Scores and hidden states of prompts. A request that asked for nothing else is over."""
        for request, (run, scored) in got.prompts.items():
            request.take_scores(run, scored)
        for request, (run, pooled) in got.pooled.items():
            request.take_pooled(run, pooled)
        for request in [*got.prompts, *got.pooled]:
            if request.is_read_only and request.lead.remaining_len == 0 and request.request_id in self._live:
                self._end(request, "length" if request.embedding is None else "stop")

    def _fork_choices(self, got: Harvest) -> None:
        """Choices that drew from a row of the first one's sequence go on in their own."""
        for request in got.forking:
            if request.request_id in self._live:
                for choice in request.choices[1:]:
                    request.running[choice.sequence] = choice
                    self._scheduler.fork(request.lead, choice.sequence)

    def _append(self, pick: Pick, now: float) -> None:
        request, choice, token = pick.request, pick.choice, pick.token
        if token is None:
            self._fail_broken(request)
            return
        self._account.token(choice, request, now)
        # The drafted tokens before it have stood, so their K/V do.
        choice.sequence.computed_len += pick.drafted > 0
        if pick.run.length - len(pick.run.draft) > 1:
            self._scheduler.remember(choice.sequence)
        request.completion_tokens += 1
        self._scheduler.charge_sampled(choice.sequence)
        self._tell(request, choice, choice.take(token), (token,), () if pick.scored is None else (pick.scored,))

    def _search_on(self, request: Request, runs: list[Run]) -> None:
        assert request.search is not None
        request.completion_tokens += len(runs)
        for run in runs:
            self._scheduler.charge_sampled(run.sequence)
        if request.search.advance(self._scheduler):
            self._end(request, "length")

    def _tell(
        self, request: Request, choice: Choice, taken: Taken, tokens: tuple[int, ...], scored: tuple[Scored, ...]
    ) -> None:
        """Say what a choice brought. When all choices have ended, the request is over."""
        if request.is_held_back:
            choice.hold_back(taken.text, scored)
        else:
            self._events.append(token_event(request, choice, taken, tokens, scored, self._piece))
        if taken.reason is not None:
            if request.running.pop(choice.sequence, None) is not None:
                self._let_go(choice.sequence, keep_pages=True)
            if all(each.reason is not None for each in request.choices):
                self._conclude(request, taken.reason)

    def _end(self, request: Request, reason: FinishReason) -> None:
        """Every choice that has not ended ends for this reason."""
        if request.search is not None:
            request.choices = self._intake.choices_of(request, request.search)
        for choice in [choice for choice in request.choices if choice.reason is None]:
            self._tell(request, choice, choice.end(reason), (), ())
        if request.request_id in self._live:
            self._conclude(request, request.choices[0].reason or reason)

    def _conclude(self, request: Request, reason: FinishReason) -> None:
        """The last event carries the usage."""
        usage = self._close(request, reason, keep_pages=True)
        if request.is_held_back:
            self._events += held_back_events(request, self._piece)
        self._events[-1] = msgspec.structs.replace(self._events[-1], usage=usage)

    def _fail(self, request: Request, code: str, message: str, *, permanent: bool, param: str | None = None) -> None:
        usage = self._close(request, f"error:{code}", keep_pages=False)
        self._events.append(EngineError(request.request_id, code, message, param, permanent, usage))

    def _fail_broken(self, request: Request) -> None:
        message = "the model's output is not finite for this request: the adapter's weights are unusable"
        self._fail(request, "non_finite_logits", message, permanent=True)

    def _close(self, request: Request, reason: str, *, keep_pages: bool) -> Usage:
        usage = request.usage
        del self._live[request.request_id]
        for sequence in request.sequences:
            self._let_go(sequence, keep_pages=keep_pages)
        self._journal.end(request.request_id, usage, reason)
        request.log_end(usage, reason)
        if self._spans:
            self._spans.ended(request.request_id, reason, usage)
        self.metrics.ended(reason, usage.prompt_tokens, usage.cached_tokens, usage.completion_tokens)
        if request.has_run:
            self._rate.served()
        return usage

    def _let_go(self, sequence: Sequence, *, keep_pages: bool) -> None:
        self._overlap.end(sequence, keep_pages=keep_pages)
        self._speculator.forget(sequence)

    def _fail_batch(self, batch: Batch, error: Exception) -> None:
        requests = {run.sequence.request_id: None for run in batch.runs}
        log.error("a step failed", exc_info=error, extra={"requests": [*requests]})
        for request_id in requests:
            message = f"the engine failed at this request's step: {type(error).__name__}"
            self._fail(self._live[request_id], "engine_fault", message, permanent=False)

    def _fail_unloadable(self) -> None:
        for digest, error in self._adapters.take_failures().items():
            for request_id in {sequence.request_id: None for sequence in self._scheduler.waiting_for(digest)}:
                request = self._live[request_id]
                message = f"adapter {request.version or ''} cannot be served: {error}"
                self._fail(request, "adapter_unavailable", message, permanent=error.permanent, param="adapter")

    def _fail_overdue(self) -> None:
        now = self._clock()
        for request in [r for r in self._live.values() if r.deadline is not None and r.deadline <= now]:
            message = f"the request did not end within its deadline_s of {request.deadline_s:g} s"
            self._fail(request, "deadline_exceeded", message, permanent=False)

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
