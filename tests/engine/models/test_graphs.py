"""Captured steps without a GPU: the shapes and their padding, and the choice between recording, replay and neither."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from transformers import LlamaConfig, LlamaForCausalLM

from engine.adapters.bank import LoraBank, LoraWeights
from engine.cache.kv import KVCache
from engine.models import graphs
from engine.models.decoder import Decoder
from engine.models.families import read_plan
from engine.models.graph_shapes import GraphShape, bucket, fill, shape_for, views
from engine.models.graphs import Hidden, StepGraphs, Work
from engine.models.layers import Step
from engine.models.weights import Checkpoint
from kernels.embedding_table import EmbeddingUpdate
from kernels.paging import PagedBatch
from kernels.segments import Segments
from kernels.torch_ops import TorchOps

PAGE, PAGES = 4, 12
SCRATCH = PAGES


class Repeater:
    """A recorder without graphs: it does the work again."""

    def __init__(self) -> None:
        self.recorded = self.sent = 0

    def buffer(self, size: int) -> tuple[Tensor, Tensor]:
        return torch.full((size,), -7, dtype=torch.int32), torch.full((size,), -7, dtype=torch.int32)

    def send(self, host: Tensor, device: Tensor) -> None:
        self.sent += 1
        device.copy_(host)

    def settle(self) -> None: ...

    def record(self, work: Work) -> Work:
        self.recorded += 1
        return work


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    torch.manual_seed(0)
    shape = {"vocab_size": 90, "hidden_size": 64, "intermediate_size": 48, "num_hidden_layers": 2}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 64}
    path = tmp_path_factory.mktemp("model")
    LlamaForCausalLM(LlamaConfig(**shape, **heads, initializer_range=0.2)).save_pretrained(path)
    return path


class World:
    """A model with two adapters, and its recordings."""

    def __init__(self, folder) -> None:
        plan, ops = read_plan(folder), TorchOps()
        info = plan.info("tiny")
        self.bank = LoraBank(info, 3, 16, torch.float32, "cpu")
        for slot in (0, 1):
            self.load(info, slot, rank=3 + slot)
        self.info, self.kv = info, KVCache(info, PAGES + 1, PAGE, "fp32")
        for layer in self.kv.layers:
            layer.k.zero_(), layer.v.zero_()
        with Checkpoint(folder) as checkpoint:
            self.model = Decoder(plan, checkpoint, self.bank, ops)
        self.repeater = Repeater()
        self.graphs = StepGraphs(self.model, self.bank, self.kv, self.repeater, SCRATCH)

    def load(self, info, slot: int, rank: int) -> None:
        sites = {(0, name): shape for name, shape in info.modules.items()}
        self.bank.write(
            slot,
            {
                key: LoraWeights(torch.randn(rank, i) / 4, torch.randn(o, rank) / 4, 0.5)
                for key, (o, i) in sites.items()
            },
        )

    def both(self, step: Step) -> tuple[Hidden, Hidden | None]:
        """As it is, then through a recording, from the same pages; also that both wrote the same pages."""
        tokens = list(range(step.batch.tokens))
        before = [(layer.k.clone(), layer.v.clone()) for layer in self.kv.layers]
        plain = self.model.hidden(torch.tensor(tokens), step, self.kv)
        after = [(layer.k.clone(), layer.v.clone()) for layer in self.kv.layers]
        for layer, (k, v) in zip(self.kv.layers, before, strict=True):
            layer.k.copy_(k), layer.v.copy_(v)
        found = self.graphs.hidden(tokens, step)
        for layer, (k, v) in zip(self.kv.layers, after, strict=True):
            assert torch.equal(layer.k[:SCRATCH], k[:SCRATCH]), "a page of a live sequence was touched"
            assert torch.equal(layer.v[:SCRATCH], v[:SCRATCH])
        return plain, found


@pytest.fixture
def world(folder) -> World:
    return World(folder)


def step_of(starts: list[int], lengths: list[int], slots: list[int | None]) -> Step:
    """Sequence i has the pages 3i, 3i + 1, 3i + 2."""
    tables = [[3 * i, 3 * i + 1, 3 * i + 2] for i in range(len(starts))]
    batch = PagedBatch.build(starts, lengths, tables, PAGE, "cpu")
    per_token = [slot for slot, length in zip(slots, lengths, strict=True) for _ in range(length)]
    return Step(batch, Segments.build(slots, lengths, chunk=64), per_token)


STEPS = {
    "decode": ([3, 0, 7], [1, 1, 1], [None, None, None]),
    "decode-lora": ([3, 0, 7], [1, 1, 1], [0, None, 1]),
    "one": ([5], [1], [1]),
    "prefill": ([0, 4], [7, 5], [None, None]),
    "mixed-lora": ([0, 9, 2], [5, 1, 3], [1, 0, None]),
    "verification": ([4, 4], [3, 3], [0, 0]),
}


@pytest.mark.parametrize("name", STEPS)
def test_a_padded_step_answers_the_same_and_writes_the_same_pages(world, name) -> None:
    step = step_of(*STEPS[name])
    plain, found = world.both(step)
    assert found is not None
    for ours, expected in zip(found, plain, strict=True):
        torch.testing.assert_close(ours, expected, atol=1e-5, rtol=1e-5)


def test_the_same_shape_is_recorded_once_and_read_anew(world) -> None:
    for starts in ([3, 0, 7], [6, 6, 6], [1, 2, 3]):
        plain, found = world.both(step_of(starts, [1, 1, 1], [0, None, 1]))
        torch.testing.assert_close(found, plain, atol=1e-5, rtol=1e-5)
    assert (world.repeater.recorded, world.repeater.sent) == (1, 3)
    world.both(step_of([3, 0, 7], [1, 1, 1], [None] * 3))  # without LoRA: the other set
    assert world.repeater.recorded == 2


def test_an_adapter_that_outgrows_a_recording_has_it_made_anew(world) -> None:
    step = step_of([3, 0], [1, 1], [0, 1])
    world.both(step)
    world.load(world.info, 2, rank=2)  # fits the grid that there is
    world.both(step)
    assert world.repeater.recorded == 1
    world.load(world.info, 2, rank=9)
    plain, found = world.both(step)
    torch.testing.assert_close(found, plain, atol=1e-5, rtol=1e-5)
    assert world.repeater.recorded == 2


def test_without_lora_ranks_do_not_matter(world) -> None:
    step = step_of([3, 0], [1, 1], [None, None])
    world.both(step)
    world.load(world.info, 2, rank=9)
    world.both(step)
    assert world.repeater.recorded == 1


def test_the_first_adapted_embedding_is_recorded_with_the_step(world) -> None:
    step = step_of([3, 0], [1, 1], [0, None])
    first, _ = world.both(step)
    world.bank.embedding.write(0, EmbeddingUpdate(torch.randn(90, 2), torch.randn(2, 64), 1.0, None, None))
    plain, found = world.both(step)
    assert found is not None
    for ours, expected in zip(found, plain, strict=True):
        torch.testing.assert_close(ours, expected)
    assert not torch.allclose(plain[0][0], first[0][0])
    world.bank.embedding.clear(0)
    world.both(step)
    assert world.repeater.recorded == 2, "without one the recording still serves"


def test_tokens_that_only_the_device_knows_take_the_place_of_the_hosts(world) -> None:
    step = step_of([3, 0, 7], [1, 1, 1], [0, None, 1])
    expected = world.graphs.hidden([5, 6, 7], step)
    expected = [each.clone() for each in expected]
    found = world.graphs.hidden([0, 0, 0], step, torch.tensor([5, 6, 7], dtype=torch.int32))
    assert all(torch.equal(ours, theirs) for ours, theirs in zip(found, expected, strict=True))


def test_steps_that_recordings_are_not_for_run_as_they_are(world, monkeypatch) -> None:
    monkeypatch.setattr(graphs, "MOST_TOKENS", 3)
    assert world.graphs.hidden([1, 2, 3], step_of([3, 0], [1, 2], [1, None])) is None
    monkeypatch.setattr(graphs, "MOST_TOKENS", 512)
    monkeypatch.setattr(graphs, "MOST_KEYS", 8)
    assert world.graphs.hidden([1], step_of([8], [1], [1])) is None


def test_the_least_recently_used_recording_goes_first(world, monkeypatch) -> None:
    monkeypatch.setattr(graphs, "MOST_RECORDINGS", 2)
    shapes = [step_of([0] * n, [1] * n, [None] * n) for n in (1, 2, 3)]
    for index in (0, 1, 0, 2, 0, 1):
        world.graphs.hidden([1] * shapes[index].batch.tokens, shapes[index])
    assert world.repeater.recorded == 4  # the second was dropped for the third, and recorded again


@given(st.integers(1, 5000))
def test_a_bucket_holds_its_count_and_wastes_at_most_half_of_it(count: int) -> None:
    assert count <= bucket(count) < 1.5 * count + 1
    assert bucket(bucket(count)) == bucket(count)


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(1, 9), st.booleans()), min_size=1, max_size=12))
def test_any_step_padded_keeps_its_tokens_and_leaves_live_pages_alone(runs) -> None:
    starts, lengths = [start for start, _, _ in runs], [length for _, length, _ in runs]
    tables = [list(range(20 * i, 20 * i + 20)) for i in range(len(runs))]
    batch = PagedBatch.build(starts, lengths, tables, PAGE, "cpu")
    segments = Segments.build([0 if adapted else None for *_, adapted in runs], lengths, chunk=64)
    shape = shape_for(batch, segments, page_size=PAGE, most_tokens=512, most_width=100)
    assert shape is not None
    flat = torch.full((shape.size,), -7, dtype=torch.int32)
    fill(flat, shape, list(range(batch.tokens)), batch, segments, 999)
    ids, padded, grouped = views(flat, shape)
    assert ids[: batch.tokens].tolist() == list(range(batch.tokens))
    assert (padded.tokens == padded.runs) == (batch.tokens == batch.runs)
    assert int(padded.run_starts[-1]) == shape.tokens
    counts = (padded.run_starts[1:] - padded.run_starts[:-1]).tolist()
    assert min(counts) >= 0
    assert (padded.tokens > padded.runs) or max(counts) == 1
    for token in range(shape.tokens):
        run, position = int(padded.run_of[token]), int(padded.positions[token])
        page = int(padded.page_table[run, position // PAGE])
        assert int(padded.run_starts[run]) <= token < int(padded.run_starts[run + 1])
        if token < batch.tokens:
            assert page == int(batch.page_table[int(batch.run_of[token]), position // PAGE])
        else:
            assert page == 999
    assert grouped.lengths.sum() == segments.lengths.sum()
    assert torch.equal(grouped.order[: segments.order.shape[0]], segments.order)


def test_a_step_beyond_the_limits_has_no_shape() -> None:
    batch = PagedBatch.build([0], [9], [[0, 1, 2]], PAGE, "cpu")
    none = Segments.build([None], [9], chunk=64)
    assert shape_for(batch, none, page_size=PAGE, most_tokens=9, most_width=9) is None
    assert shape_for(batch, none, page_size=PAGE, most_tokens=16, most_width=2) is None
    assert shape_for(batch, none, page_size=PAGE, most_tokens=16, most_width=3) == GraphShape(12, 2, 3, 0, 0)
