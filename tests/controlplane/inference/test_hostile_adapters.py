"""Hostile adapters that got past every check, on the real engine: each is refused there too, and nobody else's answer
changes by a bit. And the trial of good ones, on the same engine."""

import json
from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np
import pytest
from safetensors.numpy import save_file

from controlplane.adapters.models import Adapter, AdapterVersion
from controlplane.adapters.states import State
from controlplane.inference.engine_faults import EngineGone, EngineRefusal
from controlplane.inference.engine_sync import EngineCalls
from controlplane.inference.tasks import try_adapter
from engine.adapters.format import folder_digest
from engine.protocol import AdapterRef, Generate, Sampling
from tenants.models import Tenant
from tenants.scope import ALL_TENANTS, tenant_scope
from tests.controlplane.adapters.hostile import hostile
from tests.controlplane.adapters.peft_folder import PeftFolder
from tests.controlplane.inference.real_engine import real_engine

pytestmark = pytest.mark.stack
ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = ROOT / "examples" / "adapters"
GREEDY = Sampling(12, temperature=0.0, ignore_eos=True, logprobs=3, prompt_logprobs=1)


@pytest.fixture(scope="module")
def engine_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with real_engine(tmp_path_factory.mktemp("real")) as url:
        _wait(url)
        yield url


def _wait(url: str) -> None:
    for _ in range(60):
        try:
            with EngineCalls(url, seconds=2) as engine:
                engine.describe()
                return
        except EngineGone:
            continue
    raise AssertionError("the engine did not start")


def example(name: str) -> PeftFolder:
    files = ("adapter_config.json", "adapter_model.safetensors")
    return PeftFolder({file: (EXAMPLES / name / file).read_bytes() for file in files})


def ref_of(folder: Path) -> AdapterRef:
    return AdapterRef(folder.name, folder.absolute().as_uri(), folder_digest(folder), 8)


def answer(engine: EngineCalls, tenant: str, adapter: AdapterRef | None, salt: str) -> bytes:
    """Text, tokens and every score of them, as bytes."""
    prompt = engine.prepare("Tell me about the sea.").token_ids
    events = engine.generate(
        Generate(f"{tenant}-{salt}", tenant, f"{tenant}-{salt}", prompt, GREEDY, adapter), seconds=60
    )
    said = [(event.text, event.token_ids, event.logprobs, event.prompt_logprobs) for event in events]
    return json.dumps(msgspec.to_builtins(said, builtin_types=(bytes,)), default=repr).encode()


def test_the_answers_to_others_are_the_same_to_the_bit(engine_url: str, tmp_path: Path) -> None:
    others = {"base": None, "pirate": ref_of(EXAMPLES / "pirate"), "sql": ref_of(EXAMPLES / "sql")}
    cases = list(hostile(example("pirate")))
    chosen = cases[:: len(cases) // 40]
    with EngineCalls(engine_url, seconds=60) as engine:
        before = {name: answer(engine, name, adapter, "before") for name, adapter in others.items()}
        assert len(set(before.values())) == len(others)
        for i, case in enumerate(chosen):
            folder = tmp_path / f"hostile-{i}"
            folder.mkdir()
            for name, content in case.folder.files.items():
                (folder / name).write_bytes(content)
            with pytest.raises(EngineRefusal) as refused:
                answer(engine, "thief", ref_of(folder), str(i))
            assert refused.value.error.code == "adapter_unavailable", case.name
        after = {name: answer(engine, name, adapter, "after") for name, adapter in others.items()}
    assert after == before


def tried(folder: AdapterRef, *modules: str) -> AdapterVersion:
    """A version whose files are right, after its trial."""
    tenant = Tenant.objects.create(slug="acme", name="Acme")
    with tenant_scope(ALL_TENANTS):
        adapter = Adapter.objects.create(tenant=tenant, name="tried", base_model="SmolLM2-135M-Instruct")
        version = AdapterVersion.objects.create(
            tenant=tenant, adapter=adapter, number=1, size_bytes=1, state=State.CHECKING, digest=folder.digest,
            rank=folder.rank, uri=folder.uri, target_modules=list(modules),
        )  # fmt: skip
    try_adapter(version.id)
    with tenant_scope(ALL_TENANTS):
        version.refresh_from_db()
    return version


@pytest.mark.parametrize("token", [49_100, 20])
def test_an_adapter_that_trained_one_token_of_the_embedding_passes_its_trial(
    engine_url: str, db: None, settings: object, tmp_path: Path, token: int
) -> None:
    """The row is read by no word of the trial's first prompt, so that alone would call it the base model."""
    a, b = np.zeros((1, 49_152), np.float32), np.full((576, 1), 0.3, np.float32)
    a[0, token] = 1.0
    name = "base_model.model.model.embed_tokens.lora_embedding_"
    config = {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "r": 1,
        "lora_alpha": 1,
        "target_modules": ["embed_tokens"],
    }
    (tmp_path / "adapter_config.json").write_text(json.dumps(config))
    save_file({f"{name}A": a, f"{name}B": b}, tmp_path / "adapter_model.safetensors")
    version = tried(AdapterRef("one-token", tmp_path.as_uri(), folder_digest(tmp_path), 1), "embed_tokens")
    assert version.state == State.READY, version.report
    trial = version.report["trial"]
    assert trial["text"] == trial["base_text"]
    assert trial["largest_difference"] > 0.01


@pytest.mark.parametrize("name", ["pirate", "json", "sql", "shout"])
def test_the_demo_adapters_pass_their_trial(engine_url: str, db: None, settings: object, name: str) -> None:
    version = tried(ref_of(EXAMPLES / name), "q_proj")
    assert version.state == State.READY, version.report
    assert version.report["trial"]["largest_difference"] > 0.01
