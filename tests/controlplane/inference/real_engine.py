"""The real engine with the demo model, as a process."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from django.test import override_settings

from engine.models.demo_model import prepare

ROOT = Path(__file__).resolve().parents[3]


@contextmanager
def real_engine(folder: Path) -> Iterator[str]:
    """Its address, which the settings name too while the block runs. It is started, and may not be ready yet."""
    model = prepare(Path(os.environ.get("VENEER_TEST_MODEL_HOME", ROOT / ".veneer")))
    url = f"ipc://{folder}/engine.sock"
    command = [
        sys.executable, "-m", "engine", "--model", str(model), "--home", str(folder), "--url", url,
        "--device", "cpu", "--kv-pool-tokens", "4096", "--drain-seconds", "0",
    ]  # fmt: skip
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL) as process:
        try:
            with override_settings(ENGINE_URL=url, MODEL_DIR=model):
                yield url
        finally:
            process.terminate()
            process.wait(30)
