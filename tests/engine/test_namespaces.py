"""Whose K/V a prompt may start from: the same tenant's with the same adapter, to the whole page, and nobody else's."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engine.tiny import PAGE, TinyEngine, change_config, make_adapter, make_model

PROMPT = [(5 * i) % 290 + 3 for i in range(19)]
SHARED = (len(PROMPT) - 1) // PAGE * PAGE


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The adapter; another one; the same one retrained; and with nothing changed but how much it weighs."""
    home = tmp_path_factory.mktemp("namespaces")
    model = make_model(home / "tiny")
    make_adapter(model, home / "adapter")
    make_adapter(model, home / "another", target_modules=["k_proj"])
    make_adapter(model, home / "retrained", seed=2)
    for name, changes in (("scaled", {"lora_alpha": 9}), ("rslora", {"use_rslora": True})):
        shutil.copytree(home / "adapter", home / name)
        change_config(home / name, **changes)
    shutil.copytree(home / "adapter", home / "copy")
    return home


@pytest.fixture
def engine(made: Path, tmp_path: Path) -> Iterator[TinyEngine]:
    engine = TinyEngine(made / "tiny", tmp_path, slots=3)
    yield engine
    engine.close()


def cached(engine: TinyEngine, adapter: Path | None, tenant: str = "acme") -> int:
    (answer,) = engine.ask((PROMPT, adapter), tenant=tenant)
    assert answer.usage is not None
    return answer.usage.cached_tokens


@pytest.mark.parametrize("other", ["another", "retrained", "scaled", "rslora", None])
def test_another_adapter_version_or_scaling_starts_from_nothing(
    engine: TinyEngine, made: Path, other: str | None
) -> None:
    assert cached(engine, made / "adapter") == 0
    assert cached(engine, made / "adapter") == SHARED
    assert cached(engine, other and made / other) == 0
    assert cached(engine, made / "adapter") == SHARED


@pytest.mark.parametrize("adapter", ["adapter", None])
def test_another_tenant_starts_from_nothing(engine: TinyEngine, made: Path, adapter: str | None) -> None:
    folder = adapter and made / adapter
    assert cached(engine, folder) == 0
    assert cached(engine, folder, tenant="globex") == 0
    assert cached(engine, folder, tenant="globex") == SHARED
    assert cached(engine, folder) == SHARED


def test_the_same_content_under_another_name_is_the_same_adapter(engine: TinyEngine, made: Path) -> None:
    assert cached(engine, made / "adapter") == 0
    assert cached(engine, made / "copy") == SHARED


def test_pages_of_another_type_are_another_engines(made: Path, tmp_path: Path) -> None:
    """The type of the K/V is an engine's own; its cache is in its memory, so none outlives it or is shared."""
    for exact in (True, False):
        engine = TinyEngine(made / "tiny", tmp_path / str(exact), exact=exact)
        assert cached(engine, made / "adapter") == 0
        assert cached(engine, made / "adapter") == SHARED
        engine.close()
