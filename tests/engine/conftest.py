"""The real base model, prepared once: in VENEER_TEST_MODEL_HOME, else in the repository's `.veneer`."""

import os
from pathlib import Path

import pytest

from engine.models.demo_model import prepare

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def base_model() -> Path:
    """A Hugging Face folder: SmolLM2-135M-Instruct in bf16. Read only."""
    return prepare(Path(os.environ.get("VENEER_TEST_MODEL_HOME", ROOT / ".veneer")))
