"""Batch -> tensors -> forward -> logits."""

import os
from collections.abc import Callable

import torch
from torch import Tensor

from engine.adapters.bank import LoraBank
from engine.cache.kv import KVCache
from engine.config import EngineConfig
from engine.model_info import ModelInfo
from engine.models.decoder_config import DecoderConfig, read_config
from engine.models.layers import Ops, Step
from engine.models.llama import Llama, model_info
from engine.models.weights import Checkpoint, ModelError
from engine.scheduling.sequence import Batch
from kernels.cpu.ops import cpu_ops
from kernels.paging import PagedBatch
from kernels.segments import Segments

Architecture = Callable[[DecoderConfig, ModelInfo, Checkpoint, LoraBank, Ops], Llama]
ARCHITECTURES: dict[str, Architecture] = {"LlamaForCausalLM": Llama}


class Runner:
    """One model on one device, with its adapter slots and its pages."""

    def __init__(self, info: ModelInfo, model: Llama, bank: LoraBank, kv: KVCache, ops: Ops) -> None:
        self.info, self.bank, self.kv = info, bank, kv
        self._model, self._ops = model, ops

    @torch.inference_mode()
    def run(self, batch: Batch) -> Tensor:
        """Compute every run, storing its K/V. Returns float32 [sampling runs, vocab], in the order of those runs."""
        step = self._step(batch)
        tokens = [token for run in batch.runs for token in run.sequence.tokens[run.start : run.start + run.length]]
        assert len(tokens) == batch.tokens, "a run reaches past its sequence's tokens"
        residual, delta = self._model.hidden(torch.tensor(tokens, device=self.bank.device), step, self.kv)
        rows = self._sampling_rows(batch)
        if not rows:
            return residual.new_empty(0, self.info.vocab_size)
        if len(rows) == len(tokens):
            return self._model.logits(residual, delta)
        last = torch.tensor(rows, device=self.bank.device)
        return self._model.logits(residual[last], delta[last])

    def _step(self, batch: Batch) -> Step:
        runs, device = batch.runs, self.bank.device
        lengths = [run.length for run in runs]
        paged = PagedBatch.build(
            [run.start for run in runs], lengths, [run.sequence.pages for run in runs], self.kv.page_size, device
        )
        slots = [run.sequence.slot for run in runs]
        return Step(paged, Segments.build(slots, lengths, chunk=self._ops.chunk, device=device))

    def _sampling_rows(self, batch: Batch) -> list[int]:
        rows, end = [], 0
        for run in batch.runs:
            end += run.length
            if run.samples:
                rows.append(end - 1)
        return rows


def load_runner(config: EngineConfig) -> Runner:
    """Read the model folder and set up its memory. Raises ModelError, with a sentence for the operator."""
    threads = config.threads or os.cpu_count() or 1
    torch.set_num_threads(threads)
    decoder = read_config(config.model)
    architecture = ARCHITECTURES.get(decoder.architecture)
    if architecture is None:
        raise ModelError(
            f"{config.model} is a {decoder.architecture}; this engine serves {', '.join(sorted(ARCHITECTURES))}"
        )
    info = model_info(decoder, config.model.resolve().name)
    dtype = torch.float32 if config.exact else torch.bfloat16
    bank = LoraBank(info, config.adapter_slots, config.max_rank, dtype, config.device)
    kv = KVCache(info, config.pages, config.page_size, exact=config.exact, device=config.device)
    ops = _ops(config, threads)
    with Checkpoint(config.model) as checkpoint:
        model = architecture(decoder, info, checkpoint, bank, ops)
    return Runner(info, model, bank, kv, ops)


def _ops(config: EngineConfig, threads: int) -> Ops:
    if config.device == "cpu":
        return cpu_ops(threads, invariant=config.exact)
    from kernels.cuda_ops import CudaOps  # imports triton, which an engine without a GPU does without

    return CudaOps()
