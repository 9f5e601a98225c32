"""Steps recorded once and replayed: hundreds of launches for the price of one.

Two sets come about by themselves, since a shape without chunks has no LoRA launches. A recording is for the ranks that
the tables had; when an adapter outgrows one of them, or is the first to adapt the embedding, it is made anew. Steps
that are too large run as they are.
"""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from engine.adapters.bank import LoraBank
from engine.cache.kv import KVCache
from engine.models.graph_shapes import GraphShape, fill, shape_for, views
from engine.models.layers import Step

MOST_TOKENS = 512  # larger steps keep the device busy without graphs
MOST_KEYS = 32_768  # of a sequence: beyond, programs for absent keys would cost more than launches
MOST_RECORDINGS = 64

Hidden = tuple[Tensor, Tensor]
Work = Callable[[], Hidden]


class Forward(Protocol):
    """What is asked of `engine.models.decoder.Decoder`."""

    def hidden(self, tokens: Tensor, step: Step, kv: KVCache) -> Hidden: ...


class Recorder(Protocol):
    """A device that can repeat work: see `CudaRecorder`."""

    def buffer(self, size: int) -> tuple[Tensor, Tensor]:
        """int32 [size] on the host and on the device."""
        ...

    def send(self, host: Tensor, device: Tensor) -> None:
        """Copy without waiting."""
        ...

    def settle(self) -> None:
        """Wait until all that was sent has arrived: a host's buffer may then be written again."""
        ...

    def record(self, work: Work) -> Work:
        """Do the work once; what is returned does it again, on the same tensors, and gives the same outputs."""
        ...


@dataclass(frozen=True, slots=True)
class Recording:
    host: Tensor
    device: Tensor
    ranks: tuple[int, ...]
    replay: Work


class StepGraphs:
    """One model's recordings, least recently used first. scratch_page: a page that no sequence owns."""

    def __init__(self, model: Forward, bank: LoraBank, kv: KVCache, recorder: Recorder, scratch_page: int) -> None:
        self._model, self._bank, self._kv, self._recorder = model, bank, kv, recorder
        self._scratch_page = scratch_page
        self._recordings: OrderedDict[GraphShape, Recording] = OrderedDict()

    def hidden(self, tokens: Sequence[int], step: Step, inputs: Tensor | None = None) -> Hidden | None:
        """The outputs of a step that lies on the CPU, valid until the next call; None where it must run as it is.

        inputs: the tokens, int32, where only the device knows them; `tokens` are then as many, of any value."""
        batch, segments = step.batch, step.segments
        page_size = self._kv.page_size
        shape = shape_for(
            batch, segments, page_size=page_size, most_tokens=MOST_TOKENS, most_width=-(-MOST_KEYS // page_size)
        )
        if shape is None:
            return None
        recording = self._fitting(shape)
        host, device = self._recorder.buffer(shape.size) if recording is None else (recording.host, recording.device)
        self._recorder.settle()
        fill(host, shape, tokens, batch, segments, self._scratch_page)
        self._recorder.send(host, device)
        if inputs is not None:
            views(device, shape)[0][: len(tokens)].copy_(inputs)
        outputs = recording.replay() if recording else self._record(shape, host, device)
        return outputs[0][: len(tokens)], outputs[1][: len(tokens)]

    def _fitting(self, shape: GraphShape) -> Recording | None:
        recording = self._recordings.get(shape)
        if recording is None:
            return None
        if shape.chunks and any(
            now > then for now, then in zip(self._bank.largest_ranks, recording.ranks, strict=True)
        ):
            del self._recordings[shape]
            return None
        self._recordings.move_to_end(shape)
        return recording

    def _record(self, shape: GraphShape, host: Tensor, device: Tensor) -> Hidden:
        ids, batch, segments = views(device, shape)
        step = Step(batch, segments, [None] * shape.tokens)
        ranks = self._bank.largest_ranks
        replay = self._recorder.record(lambda: self._model.hidden(ids, step, self._kv))
        self._recordings[shape] = Recording(host, device, ranks, replay)
        if len(self._recordings) > MOST_RECORDINGS:
            self._recordings.popitem(last=False)
        return replay()


class CudaRecorder:
    """CUDA graphs that share one pool of memory: only the outputs of the last replay are valid."""

    def __init__(self) -> None:
        self._pool = torch.cuda.graph_pool_handle()
        self._sent = torch.cuda.Event()  # type: ignore[no-untyped-call]

    def buffer(self, size: int) -> tuple[Tensor, Tensor]:
        host = torch.zeros(size, dtype=torch.int32, pin_memory=True)
        return host, host.to("cuda")

    def send(self, host: Tensor, device: Tensor) -> None:
        device.copy_(host, non_blocking=True)
        self._sent.record()

    def settle(self) -> None:
        self._sent.synchronize()

    def record(self, work: Work) -> Work:
        """Twice as it is first, on a stream of its own: kernels are compiled and libraries set up outside the graph."""
        side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(2):
                work()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self._pool):
            outputs = work()

        def replay() -> Hidden:
            graph.replay()
            return outputs

        return replay
