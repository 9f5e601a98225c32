"""Every way in which an adapter's files have been seen to bring a server down or to be served wrongly: each is refused
with its reason, by the upload check and by the engine, while the others' answers stay the same to the byte.
"""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from engine.adapters.format import AdapterRefused, check_adapter
from engine.protocol import AdapterRef
from tests.engine.tiny import VOCAB, TinyEngine, change_config, make_adapter, make_model, reference

PROMPT = [(7 * i) % 290 + 3 for i in range(13)]
STEM = "base_model.model.model.layers"
LORA_A = f"{STEM}.0.self_attn.q_proj.lora_A.weight"
Spoil = Callable[[Path], None]


def tensors(change: Callable[[dict[str, torch.Tensor]], object]) -> Spoil:
    def spoil(folder: Path) -> None:
        file = folder / "adapter_model.safetensors"
        found = load_file(file)
        change(found)
        save_file(found, file)

    return spoil


def renamed(old: str, new: str) -> Spoil:
    def change(found: dict[str, torch.Tensor]) -> None:
        for name in [name for name in found if old in name]:
            found[name.replace(old, new)] = found.pop(name)

    return tensors(change)


def put(name: str, *shape: int, value: float = 0.5) -> Spoil:
    return tensors(lambda found: found.update({name: torch.full(shape, value)}))


def content(change: Callable[[bytes], bytes], name: str = "adapter_model.safetensors") -> Spoil:
    return lambda folder: (folder / name).write_bytes(change((folder / name).read_bytes())) and None


def config(**changes: object) -> Spoil:
    return lambda folder: change_config(folder, **changes)


def without(key: str) -> Spoil:
    def spoil(folder: Path) -> None:
        path = folder / "adapter_config.json"
        path.write_text(json.dumps({k: v for k, v in json.loads(path.read_text()).items() if k != key}))

    return spoil


def linked(folder: Path) -> None:
    target = folder.parent / f"{folder.name}-elsewhere"
    (folder / "adapter_model.safetensors").rename(target)
    (folder / "adapter_model.safetensors").symlink_to(target)


def as_pickle(folder: Path) -> None:
    file = folder / "adapter_model.safetensors"
    torch.save(load_file(file), folder / "adapter_model.bin")
    file.unlink()


FAULTS: dict[str, tuple[str, Spoil]] = {
    "A1 wrong prefix": ("tensor_unmatched", renamed("base_model.model.model", "transformer")),
    "A2 text model of a multimodal base": ("tensor_unmatched", renamed("model.layers", "language_model.model.layers")),
    "A4 module names of another architecture": ("tensor_unmatched", renamed("self_attn.q_proj", "attn.c_attn")),
    "A5 a module that is computed otherwise": (
        "tensor_unmatched",
        put(f"{STEM}.0.self_attn.kv_b_proj.lora_A.weight", 4, 48),
    ),
    "A6 scale of another rank": ("rank_mismatch", config(r=2)),
    "A8 a pattern that the tensors do not follow": ("rank_mismatch", config(rank_pattern={"q_proj": 2})),
    "A9 norms trained whole": (
        "modules_to_save_unsupported",
        put("base_model.model.model.layers.0.input_layernorm.weight", 48),
    ),
    "A10 a longer vocabulary": ("tensor_shape_wrong", put("base_model.model.lm_head.weight", VOCAB + 64, 48)),
    "A12 pickled weights": ("pickle_refused", as_pickle),
    "A17 fused names on a base that has them apart": (
        "tensor_unmatched",
        put(f"{STEM}.0.self_attn.qkv_proj.lora_A.weight", 4, 48),
    ),
    "A21 rank over the limit": (
        "rank_over_limit",
        tensors(
            lambda found: found.update({n: t.repeat(*((5, 1) if "_A" in n else (1, 5))) for n, t in found.items()})
        ),
    ),
    "A22 experts of a base without": (
        "tensor_unmatched",
        put(f"{STEM}.0.mlp.experts.0.gate_proj.lora_A.weight", 4, 48),
    ),
    "A24 truncated": ("header_truncated", content(lambda data: data[:-100])),
    "A24 header cut": ("header_truncated", content(lambda data: data[:40])),
    "A24 bytes too many": ("header_invalid", content(lambda data: data + b"\0" * 8)),
    "A24 no content": ("header_truncated", content(lambda data: b"")),
    "A25 no tensors": ("file_missing", lambda folder: (folder / "adapter_model.safetensors").unlink()),
    "A25 no config": ("file_missing", lambda folder: (folder / "adapter_config.json").unlink()),
    "A26 no peft_type": ("config_unsupported", without("peft_type")),
    "A26 config that is no object": ("config_invalid", content(lambda data: b"[]", "adapter_config.json")),
    "A27 a link out of its folder": ("file_not_regular", linked),
    "A29 names of another trainer": (
        "tensor_unmatched",
        put("base_model.model.model.unembed_tokens.lora_A.weight", 4, 48),
    ),
    "A32 quantised tensors": (
        "dtype_unsupported",
        tensors(lambda found: found.update({LORA_A: found[LORA_A].to(torch.float8_e4m3fn)})),
    ),
    "A36 its own template": ("tokenizer_file_refused", lambda folder: (folder / "chat_template.jinja").touch()),
    "A36 its own tokenizer": ("tokenizer_file_refused", lambda folder: (folder / "tokenizer.json").touch()),
    "one of a pair": ("tensor_unpaired", tensors(lambda found: found.pop(LORA_A))),
    "another width": ("tensor_shape_wrong", tensors(lambda found: found.update({LORA_A: torch.ones(4, 64)}))),
    "transposed": ("tensor_shape_wrong", tensors(lambda found: found.update({LORA_A: found[LORA_A].T.contiguous()}))),
    "not a number": ("non_finite", put(LORA_A, 4, 48, value=float("nan"))),
    "infinite": ("non_finite", put(LORA_A, 4, 48, value=float("inf"))),
    "never trained": (
        "changes_nothing",
        tensors(lambda found: found.update({n: t * ("_A" in n) for n, t in found.items()})),
    ),
    "a second set of names": (
        "tensor_duplicate",
        put(LORA_A.removeprefix("base_model.model."), 4, 48),
    ),
    "magnitudes that the config does not know": (
        "config_tensor_mismatch",
        put(f"{STEM}.0.self_attn.q_proj.lora_magnitude_vector", 48),
    ),
    "DoRA without magnitudes": ("config_tensor_mismatch", config(use_dora=True)),
    "another method": ("config_unsupported", config(peft_type="LOHA")),
    "a start on a changed base": ("config_unsupported", config(init_lora_weights="pissa")),
    "code to run": ("config_unsupported", config(auto_map={"AutoModel": "evil.py"})),
    "another base": ("base_model_mismatch", config(base_model_name_or_path="meta-llama/Llama-3.1-8B")),
}


# Faults of the folder, not of what is in the adapter's files: an engine fetches these alone, by their names.
FOLDER_FAULTS = ("file_not_regular", "tokenizer_file_refused")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """tiny (the model), good, and for each fault a folder."""
    home = tmp_path_factory.mktemp("faults")
    model = make_model(home / "tiny")
    make_adapter(model, home / "good")
    for kind, (_, spoil) in FAULTS.items():
        shutil.copytree(home / "good", home / kind)
        spoil(home / kind)
    return home


@pytest.fixture(scope="module")
def engine(made: Path) -> Iterator[TinyEngine]:
    engine = TinyEngine(made / "tiny", made / "engine", slots=2)
    yield engine
    engine.close()


@pytest.fixture(scope="module")
def undisturbed(engine: TinyEngine, made: Path) -> list[list[int]]:
    """What the base and the good adapter say while nobody disturbs them."""
    return [answer.tokens for answer in engine.ask((PROMPT, None), (PROMPT, made / "good"))]


@pytest.mark.parametrize("kind", FAULTS)
def test_it_is_refused_and_the_others_are_served_as_before(
    engine: TinyEngine, made: Path, undisturbed: list[list[int]], kind: str
) -> None:
    folder, (code, _) = made / kind, FAULTS[kind]
    with pytest.raises(AdapterRefused) as refused:
        check_adapter(folder, engine.base, engine.limits)
    problems = refused.value.problems
    assert code in {problem.code for problem in problems}
    assert all(all(problem.as_dict().values()) for problem in problems)
    if code in FOLDER_FAULTS:
        return
    # As if it had been published all the same, under the digest of what lies there, where there is one.
    broken = AdapterRef(kind, folder.as_uri(), _digest(folder), 4)
    base, good, bad, *_ = answers = engine.ask((PROMPT, None), (PROMPT, made / "good"), (PROMPT, broken))
    assert [base.tokens, good.tokens] == undisturbed
    assert bad.tokens == []
    assert bad.error is not None
    assert (bad.error.code, bad.error.permanent) == ("adapter_unavailable", True)
    assert bad.usage is not None
    assert bad.usage.prompt_tokens == 0, "what was never computed is not charged"
    assert len(answers) == 3
    assert [answer.tokens for answer in engine.ask((PROMPT, made / "good"), (PROMPT, None))] == undisturbed[::-1]


def _digest(folder: Path) -> str:
    try:
        adapter = reference(folder)
        assert adapter is not None
        return adapter.digest
    except OSError:
        return "0" * 64


def test_a_folder_that_is_not_there_and_one_that_is_put_right(
    engine: TinyEngine, made: Path, undisturbed: list[list[int]]
) -> None:
    """A25, A34: what failed is not registered by half; once the files are right the same name is served."""
    absent = AdapterRef("absent", (made / "absent").as_uri(), "0" * 64, 4)
    (answer,) = engine.ask((PROMPT, absent))
    assert answer.error is not None
    assert "cannot be fetched" in answer.error.message
    file = made / "late" / "adapter_model.safetensors"
    shutil.copytree(made / "good", made / "late")
    change_config(made / "late", revision="main")  # another content, of which no slot holds a copy
    whole = file.read_bytes()
    wanted = reference(made / "late")
    file.write_bytes(whole[:-20])
    (answer,) = engine.ask((PROMPT, wanted))
    assert answer.error is not None
    file.write_bytes(whole)
    (answer,) = engine.ask((PROMPT, wanted))
    assert answer.tokens == undisturbed[1]


GOOD = {
    "A13 a module in the config that has no tensors": config(target_modules=["q_proj", "v_proj", "lm_head"]),
    "A12 a regex as target": config(target_modules=r"model\.layers\..*\.(q|v)_proj"),
    "A14 names without a prefix": renamed("base_model.model.", ""),
    "A32 fp16": tensors(lambda found: found.update({n: t.half() for n, t in found.items()})),
}


@pytest.mark.parametrize("kind", GOOD)
def test_what_others_refuse_without_reason_is_served(
    engine: TinyEngine, made: Path, undisturbed: list[list[int]], kind: str
) -> None:
    folder = made / kind
    if not folder.exists():
        shutil.copytree(made / "good", folder)
        GOOD[kind](folder)
    (answer,) = engine.ask((PROMPT, folder))
    assert answer.error is None
    assert len(answer.tokens) == 6
    if "fp16" not in kind:
        assert answer.tokens == undisturbed[1]


def test_a_missing_base_name_is_no_reason_to_refuse(
    engine: TinyEngine, made: Path, undisturbed: list[list[int]]
) -> None:
    """A26: PEFT writes null for a model without a name; the tensors have to fit all the same."""
    folder = made / "no base name"
    shutil.copytree(made / "good", folder)
    without("base_model_name_or_path")(folder)
    (answer,) = engine.ask((PROMPT, folder))
    assert answer.tokens == undisturbed[1]
