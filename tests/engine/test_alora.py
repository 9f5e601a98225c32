"""Activated LoRA on the whole engine: PEFT's own greedy text, and the prompt before the invocation is the base's."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from engine.scheduling.activation import fork_of
from tests.engine.tiny import PAGE, TinyEngine, greedy_by_peft, make_adapter, make_model

INVOCATION = [7, 8, 9]
BODY = [(11 * i) % 290 + 5 for i in range(1, 19)]  # holds no invocation
LINEARS = ["q_proj", "k_proj", "v_proj", "o_proj", "up_proj", "down_proj"]

PROMPTS = {
    "in the middle": BODY + INVOCATION + [20, 21, 22],
    "at the end": BODY + INVOCATION,
    "at the start": INVOCATION + BODY,
    "twice: the last one counts": BODY[:6] + INVOCATION + BODY[6:12] + INVOCATION + [30],
    "overlapping itself": [*BODY[:5], 7, 7, 8, 9, 7, 8],
    "on a page's edge": BODY[:16] + INVOCATION + [33],
    "not there": BODY,
    "cut off": [*BODY, 7, 8],
}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_model(tmp_path_factory.mktemp("alora") / "tiny")


@pytest.fixture(scope="module")
def activated(model: Path) -> Path:
    return make_adapter(
        model, model.parent / "activated", target_modules=LINEARS, alora_invocation_tokens=INVOCATION, lora_bias=True
    )


@pytest.fixture(scope="module")
def headed(model: Path) -> Path:
    """It changes the output head as well."""
    folder = model.parent / "headed"
    return make_adapter(model, folder, seed=4, target_modules=[*LINEARS, "lm_head"], alora_invocation_tokens=INVOCATION)


@pytest.fixture(scope="module")
def plain(model: Path) -> Path:
    return make_adapter(model, model.parent / "plain", target_modules=LINEARS, seed=2)


@pytest.fixture
def engine(model: Path, tmp_path: Path) -> Iterator[TinyEngine]:
    engine = TinyEngine(model, tmp_path)
    yield engine
    engine.close()


def shared_pages(prompt: list[int]) -> int:
    """Tokens in whole pages that lie before the invocation, and that leave one token to compute."""
    fork = fork_of(prompt, INVOCATION, b"")
    return min(fork.at, len(prompt) - 1) // PAGE * PAGE


@pytest.mark.parametrize("kind", PROMPTS)
def test_text_is_that_of_peft_and_the_prompt_before_is_the_base_models(
    engine: TinyEngine, model: Path, activated: Path, kind: str
) -> None:
    prompt = PROMPTS[kind]
    wanted = greedy_by_peft(model, activated, prompt, 6)
    (cold,) = engine.ask((prompt, activated))
    assert cold.tokens == wanted
    assert cold.usage is not None
    assert cold.usage.cached_tokens == 0
    (base,) = engine.ask((prompt, None))
    assert base.tokens == greedy_by_peft(model, None, prompt, 6)
    assert base.usage is not None
    assert base.usage.cached_tokens == shared_pages(prompt), "the base model takes over what is its own, and no more"
    (warm,) = engine.ask((prompt, activated))
    assert warm.tokens == wanted
    assert warm.usage is not None
    assert warm.usage.cached_tokens == (len(prompt) - 1) // PAGE * PAGE


@pytest.mark.parametrize("kind", ["in the middle", "at the end", "at the start", "not there"])
def test_a_head_is_activated_with_the_rest(engine: TinyEngine, model: Path, headed: Path, kind: str) -> None:
    prompt = PROMPTS[kind]
    wanted = greedy_by_peft(model, headed, prompt, 6)
    assert (wanted != greedy_by_peft(model, None, prompt, 6)) == (kind != "not there")
    first, base, again = engine.ask((prompt, headed), (prompt, None), (prompt, headed))
    assert first.tokens == again.tokens == wanted
    assert base.tokens == greedy_by_peft(model, None, prompt, 6)
    (warm,) = engine.ask((prompt, headed))
    assert warm.tokens == wanted


def test_in_a_batch_with_the_base_and_an_adapter_that_is_always_on(
    engine: TinyEngine, model: Path, activated: Path, plain: Path
) -> None:
    prompts = [PROMPTS["in the middle"], PROMPTS["twice: the last one counts"]]
    asked = [(prompt, adapter) for prompt in prompts for adapter in (None, activated, plain)]
    for _ in range(2):
        answers = engine.ask(*asked)
        assert [answer.tokens for answer in answers] == [greedy_by_peft(model, a, p, 6) for p, a in asked]


def test_another_tenant_and_another_adapter_share_nothing(
    engine: TinyEngine, model: Path, activated: Path, plain: Path
) -> None:
    prompt = PROMPTS["in the middle"]
    engine.ask((prompt, activated))
    (always_on,) = engine.ask((prompt, plain))
    (other_tenant,) = engine.ask((prompt, activated), tenant="globex")
    (base_of_other,) = engine.ask((prompt, None), tenant="initech")
    for answer in (always_on, other_tenant, base_of_other):
        assert answer.usage is not None
        assert answer.usage.cached_tokens == 0


def test_an_invocation_that_a_page_ends_in_the_middle_of(engine: TinyEngine, model: Path, activated: Path) -> None:
    """The same page twice, activated from its first token on in one prompt and from its last on in the other."""
    page = [*BODY[:8], 7, 8, 9, 7]
    assert len(page) % PAGE == 0
    for prompt in ([*page, 30, 31], [*page, 8, 9], [*page, 30, 31]):
        (answer,) = engine.ask((prompt, activated))
        assert answer.tokens == greedy_by_peft(model, activated, prompt, 6)


def test_two_activated_adapters_share_the_bases_pages_alone(engine: TinyEngine, model: Path, activated: Path) -> None:
    other = model.parent / "other"
    if not other.exists():
        make_adapter(model, other, seed=5, alora_invocation_tokens=INVOCATION)
    prompt = PROMPTS["in the middle"]
    engine.ask((prompt, activated))
    (answer,) = engine.ask((prompt, other))
    assert answer.usage is not None
    assert answer.usage.cached_tokens == shared_pages(prompt) == 16
    assert answer.tokens == greedy_by_peft(model, other, prompt, 6)


@given(prompt=st.lists(st.integers(0, 2), max_size=12), invocation=st.lists(st.integers(0, 2), min_size=1, max_size=4))
def test_the_last_invocation_is_found(prompt: list[int], invocation: list[int]) -> None:
    at = fork_of(prompt, invocation, b"n").at
    text, wanted = "".join(map(str, prompt)), "".join(map(str, invocation))
    assert at == text.rfind(wanted) or (at > len(prompt) and wanted not in text)


def test_a_head_of_its_own_is_never_switched_off_and_thus_refused(
    engine: TinyEngine, headed: Path, tmp_path: Path
) -> None:
    """The copy of the base's head that lies beside the pair is another one."""
    folder = Path(shutil.copytree(headed, tmp_path / "own"))
    file = folder / "adapter_model.safetensors"
    tensors = load_file(file)
    (copy,) = [name for name in tensors if "lm_head" in name and "lora" not in name]
    save_file({**tensors, copy: tensors[copy] + 1}, file)
    refused, base = engine.ask((PROMPTS["at the end"], folder), (PROMPTS["at the end"], None))
    assert refused.error is not None
    assert refused.error.code == "adapter_unavailable"
    assert "an activated LoRA has a lm_head of its own" in refused.error.message
    assert base.error is None
