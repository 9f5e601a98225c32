"""A model whose linears are one byte a weight: close to the wide one, adapters on 16-bit activations, refusals."""

from pathlib import Path

import pytest
import torch

from benchmarks.weight_quality import measure
from engine.__main__ import main
from engine.adapters.bank import LoraBank, LoraWeights
from engine.cache.kv import KVCache
from engine.config import EngineConfig, WeightType
from engine.models.decoder import Decoder
from engine.models.families import read_plan
from engine.models.layers import Ops, Step
from engine.models.weights import Checkpoint
from kernels.cpu.ops import cpu_ops
from kernels.cuda_ops import CudaOps
from kernels.packed import Coded
from kernels.paging import PagedBatch
from kernels.quantised import Quantised
from kernels.segments import Segments
from kernels.torch_ops import TorchOps
from tests.engine.tiny import VOCAB, make_model

PAGE = 8
SLOTS = [None, 0, 1]
LENGTHS = [9, 5, 12]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_model(tmp_path_factory.mktemp("model"), num_hidden_layers=3)


def adapters(bank: LoraBank, layers: int, modules: dict[str, tuple[int, int]]) -> None:
    """Slot 1 also has DoRA's gains and biases."""
    dice = torch.Generator().manual_seed(1)
    for slot, rank in ((0, 3), (1, 9)):
        weights = {}
        for layer in range(layers):
            for name, (out, inside) in modules.items():
                a, b = torch.randn(rank, inside, generator=dice) / 8, torch.randn(out, rank, generator=dice) / 8
                gain = torch.rand(out, generator=dice) + 0.5 if slot else None
                shift = torch.randn(out, generator=dice) / 8 if slot else None
                weights[layer, name] = LoraWeights(a, b, 0.5, gain, shift)
        bank.write(slot, weights)


@torch.inference_mode()
def logits(model: Path, ops: Ops, weights: WeightType, *, wide: Decoder | None = None) -> torch.Tensor:
    decoder, bank, plan = built(model, ops, weights)
    info = plan.info("tiny")
    adapters(bank, info.num_layers, info.modules)
    tables = [[10 * i + page for page in range(6)] for i in range(3)]
    batch = PagedBatch.build([0, 0, 0], LENGTHS, tables, PAGE, "cpu")
    slots = [slot for slot, length in zip(SLOTS, LENGTHS, strict=True) for _ in range(length)]
    segments = Segments.build(SLOTS, LENGTHS, chunk=ops.chunk)
    tokens = torch.randint(1, VOCAB, (sum(LENGTHS),), generator=torch.Generator().manual_seed(2))
    residual, delta = decoder.hidden(tokens, Step(batch, segments, slots), KVCache(info, 30, PAGE, "bf16"))
    return decoder.logits(residual, delta.clone(), slots)


def built(model: Path, ops: Ops, weights: WeightType) -> tuple[Decoder, LoraBank, object]:
    plan = read_plan(model)
    bank = LoraBank(plan.info("tiny"), 2, 16, torch.bfloat16, "cpu")
    with Checkpoint(model) as checkpoint:
        return Decoder(plan, checkpoint, bank, ops, weights), bank, plan


@pytest.mark.parametrize("weights", ["int8", "fp8"])
def test_logits_of_base_and_adapters_stay_near_those_of_wide_weights(model: Path, weights: WeightType) -> None:
    wide, narrow = logits(model, TorchOps(), "bf16"), logits(model, TorchOps(), weights)
    assert not torch.equal(wide, narrow)
    first = 0
    for length in LENGTHS:
        rows = slice(first, first + length)
        error = (wide[rows] - narrow[rows]).pow(2).mean().sqrt() / wide[rows].std()
        assert error < (0.1 if weights == "int8" else 0.3)
        first += length


def test_the_cpus_kernels_stay_nearer_as_their_activations_have_16_bits(model: Path) -> None:
    """Through the call that takes all layers at once, and adapters of both kinds."""
    wide, ours, narrow = (logits(model, ops, kind) for ops, kind in (
        (TorchOps(), "bf16"), (cpu_ops(1), "int8"), (TorchOps(), "int8")))  # fmt: skip
    apart = [float((each - wide).pow(2).mean().sqrt() / wide.std()) for each in (ours, narrow)]
    assert 0 < apart[0] < min(0.04, apart[1])


def test_linears_alone_are_narrow_and_adapters_are_folded_with_what_is_computed(model: Path) -> None:
    for ops, kind in ((TorchOps(), Quantised), (cpu_ops(1), Coded)):
        decoder, bank, plan = built(model, ops, "int8")
        body = decoder._branches[0].body
        assert isinstance(body.qkv.weight, kind)
        assert not isinstance(decoder._embedding.weight, Quantised | Coded)
        assert not isinstance(decoder._head.weight, Quantised | Coded)
        folded = bank.base.weight(0, "self_attn.k_proj")
        q = plan.shape.q_heads * plan.shape.head_dim
        assert torch.equal(folded, body.qkv.weight.part(q, folded.shape[0]))


def test_the_real_models_next_token_hardly_moves(base_model: Path) -> None:
    """What `benchmarks.weight_quality` measures on 20,000 tokens, on few enough for a test."""
    scores = measure(base_model, tokens=256, context=256)
    for kind, most in (("int8, CPU", 0.02), ("int8", 0.08), ("fp8", 0.16)):
        score = scores[kind]
        assert score.tokens == 255
        assert 0 < score.divergence / score.tokens < most
        assert score.agreeing > 0.75 * score.tokens


def test_an_engine_on_a_cpu_takes_int8_and_refuses_the_rest(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folders = {"model": tmp_path, "home": tmp_path, "url": ""}
    EngineConfig(**folders, weights="int8")
    EngineConfig(**folders, weights="fp8", device="cuda")
    with pytest.raises(ValueError, match="weights is fp8, which device cpu does not multiply: use int8, or bf16"):
        EngineConfig(**folders, weights="fp8")
    with pytest.raises(ValueError, match="weights is int8 and exact keeps them in fp32"):
        EngineConfig(**folders, weights="int8", exact=True)
    arguments = ["--model", str(tmp_path), "--home", str(tmp_path), "--url", "ipc://x", "--device", "cpu"]
    assert main([*arguments, "--weights", "fp8"]) == 2
    assert "use int8" in capsys.readouterr().err


def test_a_gpu_without_a_unit_for_e4m3_refuses_it(monkeypatch: pytest.MonkeyPatch) -> None:
    ops = CudaOps(interpreted=True)
    monkeypatch.setattr(ops, "_multiplies_e4m3", False)
    with pytest.raises(ValueError, match=r"compute capability 8\.9 or higher: use --weights int8"):
        ops.quantise(torch.randn(4, 4), "fp8")
    assert isinstance(ops.quantise(torch.randn(4, 4), "int8"), Quantised)
