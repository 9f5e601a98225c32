"""The running product for clients that know nothing of it: the real door under uvicorn, a real engine process with the
base model, a real PostgreSQL, and one tenant with a key and an adapter."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from django.core.management import call_command
from django.test import override_settings
from django.utils import timezone

from controlplane.adapters.models import Adapter, AdapterVersion, AliasSplit
from controlplane.adapters.states import State
from engine.adapters.format import folder_digest
from engine.models.demo_model import prepare
from tenants.scope import ALL_TENANTS, tenant_scope
from tests.controlplane.inference.conftest import Caller, new_caller, running, wait_for

# Nothing is fetched while tests run: litellm would ask for prices when it is imported.
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
ROOT = Path(__file__).resolve().parents[2]
ADAPTER = ROOT / "examples" / "adapters" / "pirate"


@dataclass(frozen=True)
class Product:
    """url: with the `/v1`. key: of a tenant that has the adapter `pirate`."""

    url: str
    key: str
    model: str


@pytest.fixture(scope="session")
def engine_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """One engine for all modules here: starting it is what costs."""
    with _engine(prepare(Path(ROOT / ".veneer")), tmp_path_factory.mktemp("product")) as url:
        yield url


@pytest.fixture(scope="module")
def product(engine_url: str, django_db_setup: None, django_db_blocker: pytest.FixtureRequest) -> Iterator[Product]:
    """Once for a module, whose tests do not touch the database; those of the next one find it empty."""
    model = prepare(Path(ROOT / ".veneer"))
    with override_settings(ENGINE_URL=engine_url, MODEL_DIR=model):
        from controlplane.inference.asgi import application  # sets Django up, which pytest-django must do first

        with django_db_blocker.unblock(), running(application) as address:
            with tenant_scope(ALL_TENANTS):
                caller = new_caller()
            _add_adapter(caller, model.name)
            wait_for(lambda: application._door.engine.is_up, "the door to know its engine", 60)
            yield Product(f"{address}/v1", caller.key, model.name)
            wait_for(lambda: not application._door._tasks, "requests to end")
            application._door.check_integrity()
            call_command("flush", verbosity=0, interactive=False)


@contextmanager
def _engine(model: Path, folder: Path) -> Iterator[str]:
    url = f"ipc://{folder}/engine.sock"
    command = [sys.executable, "-m", "engine", "--model", str(model), "--home", str(folder / "home"), "--url", url]
    command += ["--device", "cpu", "--kv-pool-tokens", "16384"]
    with (folder / "engine.log").open("wb") as log:
        process = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log)
    try:
        wait_for(lambda: _is_ready(process, folder / "engine.log"), "the engine to be ready", 120)
        yield url
    finally:
        process.terminate()
        process.wait(30)


def _is_ready(process: subprocess.Popen, log: Path) -> bool:
    assert process.poll() is None, log.read_text()
    return "engine ready" in log.read_text()


def _add_adapter(caller: Caller, base_model: str) -> None:
    with tenant_scope(ALL_TENANTS):
        adapter = Adapter.objects.create(tenant=caller.tenant, name="pirate", base_model=base_model)
        version = AdapterVersion.objects.create(
            tenant=caller.tenant,
            adapter=adapter,
            number=1,
            state=State.READY,
            digest=folder_digest(ADAPTER),
            rank=json.loads((ADAPTER / "adapter_config.json").read_text())["r"],
            uri=ADAPTER.as_uri(),
            size_bytes=1,
            ready_at=timezone.now(),
        )
        AliasSplit.objects.create(adapter=adapter, version=version, weight=100)
