"""The two files of an adapter: which names, of what kind, how large, and the digest that identifies them."""

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from engine.adapters.lora_config import CONFIG_FILE
from engine.adapters.problems import Problem, shown

TENSOR_FILE = "adapter_model.safetensors"
ADAPTER_FILES = (CONFIG_FILE, TENSOR_FILE)
MAX_CONFIG_BYTES = 1_000_000
_PICKLED = (".bin", ".pt", ".pth", ".pkl", ".pickle", ".ckpt")


def digest_of(digests: Mapping[str, str]) -> str:
    """The identity of an adapter version: SHA-256 over `name NUL sha256-hex LF` of each file, sorted by name."""
    lines = (f"{name}\0{digests[name]}\n" for name in sorted(digests))
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def folder_digest(folder: Path) -> str:
    """`digest_of` the two files in a folder. Raises OSError where one is missing."""
    digests = {}
    for name in ADAPTER_FILES:
        with (folder / name).open("rb") as file:
            digests[name] = hashlib.file_digest(file, "sha256").hexdigest()
    return digest_of(digests)


def check_names(names: Iterable[str]) -> list[Problem]:
    """Problems of a set of file names alone, so that an upload can be refused before a byte of it is sent."""
    names = list(names)
    problems = [_name_problem(name) for name in sorted(set(names)) if name not in ADAPTER_FILES]
    for name in sorted({name for name in names if names.count(name) > 1}):
        problems.append(Problem("file_duplicate", shown(name), "the name twice", "once", "Send each file once."))
    for name in ADAPTER_FILES:
        if name not in names:
            remedy = "Upload both files that PEFT's save_pretrained wrote."
            problems.append(Problem("file_missing", name, "no such file", name, remedy))
    return problems


def _name_problem(name: str) -> Problem:
    expected = " and ".join(ADAPTER_FILES)
    if "/" in name or "\\" in name or name in ("", ".", "..") or not name.isprintable():
        return Problem("file_name_unsafe", shown(name), "a path", expected, "Send plain file names.")
    if name.lower().endswith(_PICKLED):
        remedy = "A pickle can run code. Save with safe_serialization=True and upload the .safetensors file."
        return Problem("pickle_refused", shown(name), "a pickle file", expected, remedy)
    return Problem("file_unknown", shown(name), "a file that is not served", expected, "Upload only these two files.")


def check_files(folder: Path, max_bytes: int) -> list[Problem]:
    """Problems of what lies in the folder, no content read. Raises OSError where there is no such folder."""
    entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    problems = check_names(entry.name for entry in entries)
    known = [entry for entry in entries if entry.name in ADAPTER_FILES]
    problems += [problem for entry in known for problem in _kind_problem(entry)]
    sizes = {entry.name: entry.stat(follow_symlinks=False).st_size for entry in known}
    if sizes.get(CONFIG_FILE, 0) > MAX_CONFIG_BYTES:
        problems.append(_too_large(CONFIG_FILE, sizes[CONFIG_FILE], MAX_CONFIG_BYTES))
    if sum(sizes.values()) > max_bytes:
        problems.append(_too_large(TENSOR_FILE, sum(sizes.values()), max_bytes))
    return problems


def _kind_problem(entry: "os.DirEntry[str]") -> Iterator[Problem]:
    if not stat.S_ISREG(entry.stat(follow_symlinks=False).st_mode):
        kind = "a link" if entry.is_symlink() else "no regular file"
        yield Problem("file_not_regular", entry.name, kind, "a regular file", "Upload the file itself.")


def _too_large(name: str, found: int, limit: int) -> Problem:
    remedy = "Train with a lower rank or fewer target modules, or save in bfloat16."
    return Problem("size_over_limit", name, f"{found} bytes", f"at most {limit} bytes", remedy)
