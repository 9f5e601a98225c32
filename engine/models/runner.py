"""Batch -> tensors -> forward -> logits."""

import os
from collections.abc import Sequence

import torch
from torch import Tensor

from engine.adapters.bank import LoraBank
from engine.cache.kv import KVCache
from engine.config import EngineConfig
from engine.decoding.sampler import Draw, draw_on_device
from engine.model_info import ModelInfo
from engine.models.cuda_start import pages_that_fit
from engine.models.decoder import Decoder
from engine.models.families import read_plan
from engine.models.graphs import CudaRecorder, StepGraphs
from engine.models.layers import Ops, Step
from engine.models.rows import Rows
from engine.models.sampled import Before, Sampled
from engine.models.weights import Checkpoint
from engine.scheduling.sequence import Batch, Run
from kernels.cpu.ops import cpu_ops
from kernels.paging import PagedBatch
from kernels.segments import Segments


class Runner:
    """One model on one device, with its adapter slots and its pages."""

    def __init__(
        self,
        info: ModelInfo,
        model: Decoder,
        bank: LoraBank,
        kv: KVCache,
        ops: Ops,
        graphs: StepGraphs | None = None,
    ) -> None:
        self.info, self.bank, self.kv = info, bank, kv
        self._model, self._ops, self._graphs = model, ops, graphs

    @torch.inference_mode()
    def run(self, batch: Batch) -> Rows:
        """Compute every run, storing its K/V."""
        step = self._step(batch)
        tokens = [token for run in batch.runs for token in run.tokens]
        assert len(tokens) == batch.tokens, "a run reaches past its sequence's tokens"
        residual, delta = self._hidden(tokens, step)
        pooled, rows = _rows(batch, pools=True), _rows(batch, pools=False)
        hidden = residual.new_empty(0, self.info.hidden)
        if pooled:
            hidden = self._model.normed(residual[pooled], delta[pooled]).float()
        if not rows:
            return Rows(residual.new_empty(0, self.info.vocab_size), hidden)
        if len(rows) == len(tokens):
            return Rows(self._model.logits(residual, delta, step.slots), hidden)
        last = torch.tensor(rows, device=self.bank.device)
        return Rows(self._model.logits(residual[last], delta[last], [step.slots[row] for row in rows]), hidden)

    @torch.inference_mode()
    def start(self, batch: Batch, draws: Sequence[Draw], before: Before | None) -> Sampled:
        """Compute decodes and draw a token for each; on a GPU nobody waits, and steps follow each other on its stream.
        So what a step reads of the one before is there, and what it writes comes after all that read it."""
        step, inputs, tokens = self._step(batch), None, [0] * batch.tokens
        if before is None:
            tokens = [token for run in batch.runs for token in run.tokens]
        else:
            assert isinstance(before.pending, Sampled), "another device's tokens"
            inputs = before.pending.inputs(before.rows)
        residual, delta = self._hidden(tokens, step, inputs)
        return Sampled(draw_on_device(self._model.logits(residual, delta, step.slots), draws))

    def _hidden(self, tokens: list[int], step: Step, inputs: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """inputs: see `StepGraphs.hidden`."""
        if self._graphs is not None:
            replayed = self._graphs.hidden(tokens, step, inputs)
            if replayed is not None:
                return replayed
            device = self.bank.device
            step = Step(step.batch.to(device), step.segments.to(device), step.slots)
        known = torch.tensor(tokens, device=self.bank.device) if inputs is None else inputs.long()
        return self._model.hidden(known, step, self.kv)

    def _step(self, batch: Batch) -> Step:
        runs, device = batch.runs, self.bank.device if self._graphs is None else "cpu"
        assert all(run.sequence.behind * self.kv.page_size <= self._first_seen(run) for run in runs), "a page is gone"
        lengths = [run.length for run in runs]
        paged = PagedBatch.build(
            [run.start for run in runs],
            lengths,
            [run.sequence.pages for run in runs],
            self.kv.page_size,
            device,
            self._shifts(batch),
        )
        pieces = [piece for run in runs for piece in _pieces(run)]
        segments = Segments.build(*zip(*pieces, strict=True), chunk=self._ops.chunk, device=device)
        return Step(paged, segments, [slot for slot, length in pieces for _ in range(length)])

    def _first_seen(self, run: Run) -> int:
        """The first token whose K/V the run reads."""
        return 0 if self.info.window is None else max(0, run.start + 1 - self.info.window)

    def _shifts(self, batch: Batch) -> list[int] | None:
        """Sequences that may outgrow `switch_len` have their angles behind those of the others."""
        switch = self.info.switch_len
        if switch is None:
            return None
        sequences = [run.sequence for run in batch.runs]
        return [self.info.context_len if max(s.max_len, len(s.tokens)) > switch else 0 for s in sequences]


def _rows(batch: Batch, *, pools: bool) -> list[int]:
    """Which of the batch's tokens yield a row: of logits, or to be pooled."""
    rows, end = list[int](), 0
    for run in batch.runs:
        end += run.length
        if run.sequence.pools == pools:
            rows += range(end - run.rows, end)
    return rows


def _pieces(run: Run) -> list[tuple[int | None, int]]:
    """(slot, tokens): what comes before an activated adapter's invocation has none."""
    before = min(max(run.sequence.adapted_from - run.start, 0), run.length)
    return [(None, before), (run.sequence.slot, run.length - before)]


def load_runner(config: EngineConfig) -> Runner:
    """Read the model folder and set up its memory. Raises ModelError, with a sentence for the operator."""
    threads = config.threads or os.cpu_count() or 1
    torch.set_num_threads(threads)
    plan = read_plan(config.model)
    info = plan.info(config.model.resolve().name)
    dtype = torch.float32 if config.exact else torch.bfloat16
    bank = LoraBank(info, config.adapter_slots, config.max_rank, dtype, config.device)
    ops = _ops(config, threads)
    with Checkpoint(config.model) as checkpoint:
        model = Decoder(plan, checkpoint, bank, ops, config.weights)
    pages = config.pages or pages_that_fit(config, info, model, bank)
    kv = KVCache(info, pages, config.page_size, config.kv_type, config.device)
    graphs = None
    if config.device == "cuda" and plan.is_capturable:
        graphs = StepGraphs(model, bank, kv, CudaRecorder(), kv.scratch_page)
    return Runner(info, model, bank, kv, ops, graphs)


def _ops(config: EngineConfig, threads: int) -> Ops:
    if config.device == "cpu":
        return cpu_ops(threads)
    from kernels.cuda_ops import CudaOps  # imports triton, which an engine without a GPU does without

    return CudaOps()
