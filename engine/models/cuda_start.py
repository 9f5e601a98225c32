"""What a CUDA device is measured for at start: how many pages its memory holds beside everything else."""

import torch

from engine.adapters.bank import LoraBank
from engine.cache.kv import KVCache, bytes_per_token
from engine.config import EngineConfig
from engine.memory_plan import MemoryUse, plan_pages, slot_bytes
from engine.model_info import ModelInfo
from engine.models.decoder import Decoder
from engine.models.graphs import MOST_RECORDINGS, MOST_TOKENS
from engine.models.layers import Step
from kernels.paging import PagedBatch
from kernels.segments import Segments

RECORDING_BYTES = 8 << 20  # of one CUDA graph: its nodes, arguments and outputs


def pages_that_fit(config: EngineConfig, info: ModelInfo, model: Decoder, bank: LoraBank) -> int:
    """Raises MemoryPlanError where a step of `step_tokens` would have no room."""
    use = _measured(config, info, model, bank)
    per_token = bytes_per_token(info, config.kv_type)
    return plan_pages(
        use, page_size=config.page_size, bytes_per_token=per_token, least_tokens=config.step_tokens + config.page_size
    )


def _measured(config: EngineConfig, info: ModelInfo, model: Decoder, bank: LoraBank) -> MemoryUse:
    """Weights are on the device, slots are empty, pages do not exist yet."""
    torch.cuda.synchronize()
    free, total = torch.cuda.mem_get_info()
    others, weights = total - free - torch.cuda.memory_reserved(), torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    _run_largest_step(config, info, model)
    activations = torch.cuda.max_memory_allocated() - weights
    torch.cuda.empty_cache()
    of_a_graph = activations * min(MOST_TOKENS, config.step_tokens) // config.step_tokens
    return MemoryUse(
        total=total,
        others=others,
        weights=weights,
        slots=config.adapter_slots * slot_bytes(info, config.max_rank, bank.dtype.itemsize),
        graphs=of_a_graph + MOST_RECORDINGS * RECORDING_BYTES,
        activations=activations,
    )


@torch.inference_mode()
def _run_largest_step(config: EngineConfig, info: ModelInfo, model: Decoder) -> None:
    """Every position in one page: what is written and read there is nobody's."""
    count, device = config.step_tokens, config.device
    kv = KVCache(info, 1, config.page_size, config.kv_type, device)
    table = [0] * -(-count // config.page_size)
    batch = PagedBatch.build([0], [count], [table], config.page_size, device)
    nobody = [None] * count
    step = Step(batch, Segments.build([None], [count], chunk=1, device=device), nobody)
    residual, delta = model.hidden(torch.zeros(count, dtype=torch.int64, device=device), step, kv)
    rows = min(count, config.max_running)
    model.logits(residual[:rows], delta[:rows], nobody[:rows])
