"""Where things are, seen from the repository's root."""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
STAMPS = VENV / "stamps"
REQUIREMENTS = ROOT / "requirements"
FRONTEND = ROOT / "frontend"
MODEL_NAME = "SmolLM2-135M-Instruct"


def home() -> Path:
    """VENEER_HOME, as `platform/controlplane/env.py` reads it."""
    return Path(os.environ.get("VENEER_HOME") or ROOT / ".veneer").expanduser().absolute()
