"""The base model, where VENEER_MODEL names no other."""

import os
import subprocess

from setup.paths import MODEL_NAME, PYTHON, ROOT, home
from setup.problems import SetupProblem
from setup.terminal import Line


def prepare_model() -> None:
    if os.environ.get("VENEER_MODEL") or (home() / "models" / MODEL_NAME / "veneer-stamp.json").exists():
        return
    line = Line("base model")
    # It draws its own progress bars.
    done = subprocess.run([PYTHON, "-m", "engine.models.demo_model", "--home", home()], cwd=ROOT, check=False)
    if done.returncode:
        raise SetupProblem("the base model could not be prepared; VENEER_MODEL=<folder> uses one of your own instead.")
    line.finish(MODEL_NAME)
