"""The files of an adapter: which names, of what kind, how large, and the digest that identifies them."""

import hashlib
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from engine.adapters.lora_config import CONFIG_FILE
from engine.adapters.problems import Problem, shown

TENSOR_FILE = "adapter_model.safetensors"
INDEX_FILE = "adapter_model.safetensors.index.json"
ADAPTER_FILES = (CONFIG_FILE, TENSOR_FILE)
MAX_CONFIG_BYTES = 1_000_000
MAX_INDEX_BYTES = 4_000_000
MAX_SHARDS = 64
_SHARD = re.compile(r"adapter_model-([0-9]{5})-of-([0-9]{5})\.safetensors")
_PICKLED = (".bin", ".pt", ".pth", ".pkl", ".pickle", ".ckpt")
# What trainers write beside an adapter, and what belongs to the base model when it is served.
_TOKENIZER = {
    "tokenizer.json", "tokenizer_config.json", "tokenizer.model", "special_tokens_map.json", "added_tokens.json",
    "vocab.json", "merges.txt", "chat_template.jinja", "chat_template.json", "generation_config.json",
}  # fmt: skip


def is_adapter_file(name: str) -> bool:
    """Whether an adapter may have a file of this name. None of these names leads out of its folder."""
    return name in (*ADAPTER_FILES, INDEX_FILE) or is_shard(name)


def is_tensor_file(name: str) -> bool:
    return name == TENSOR_FILE or is_shard(name)


def is_shard(name: str) -> bool:
    return _SHARD.fullmatch(name) is not None


def digest_of(digests: Mapping[str, str]) -> str:
    """The identity of an adapter version: SHA-256 over `name NUL sha256-hex LF` of each file, sorted by name."""
    lines = (f"{name}\0{digests[name]}\n" for name in sorted(digests))
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def folder_digest(folder: Path) -> str:
    """`digest_of` the adapter's files in a folder. Raises OSError where the config or the tensors are missing."""
    names = {name for name in (path.name for path in folder.iterdir()) if is_adapter_file(name)}
    digests = {}
    for name in names | {CONFIG_FILE} | (set() if INDEX_FILE in names else {TENSOR_FILE}):
        with (folder / name).open("rb") as file:
            digests[name] = hashlib.file_digest(file, "sha256").hexdigest()
    return digest_of(digests)


def check_names(names: Iterable[str]) -> list[Problem]:
    """Problems of a set of file names alone, so that an upload can be refused before a byte of it is sent."""
    names = list(names)
    problems = [_name_problem(name) for name in sorted(set(names)) if not is_adapter_file(name)]
    for name in sorted({name for name in names if names.count(name) > 1}):
        problems.append(Problem("file_duplicate", shown(name), "the name twice", "once", "Send each file once."))
    for name in _missing(set(names)):
        remedy = "Upload all files of the adapter that save_pretrained wrote."
        problems.append(Problem("file_missing", name, "no such file", name, remedy))
    return problems + list(_shard_problems(set(names)))


def _missing(names: set[str]) -> list[str]:
    shards = [match for name in names if (match := _SHARD.fullmatch(name))]
    total = max((int(shard[2]) for shard in shards), default=0)
    if not shards:
        tensors = [] if INDEX_FILE in names and TENSOR_FILE not in names else [TENSOR_FILE]
        tensors += ["adapter_model-00001-of-00001.safetensors"] if INDEX_FILE in names else []
    else:
        numbers = range(1, min(total, MAX_SHARDS) + 1)
        tensors = [INDEX_FILE, *(f"adapter_model-{number:05d}-of-{total:05d}.safetensors" for number in numbers)]
    return [name for name in (CONFIG_FILE, *tensors) if name not in names]


def _shard_problems(names: set[str]) -> Iterator[Problem]:
    shards = sorted(name for name in names if _SHARD.fullmatch(name))
    totals = {name.rsplit("-", 1)[1] for name in shards}
    if shards and TENSOR_FILE in names:
        remedy = "Upload one set: the single file, or the shards with their index."
        yield Problem("file_duplicate", TENSOR_FILE, "a single file beside shards", "one of both", remedy)
    if len(totals) > 1 or len(shards) > MAX_SHARDS:
        remedy = "Upload the shards of one save_pretrained."
        yield Problem("file_duplicate", shards[0], f"{len(shards)} shards of {len(totals)} sets", "one set", remedy)


def _name_problem(name: str) -> Problem:
    expected = f"{' and '.join(ADAPTER_FILES)}, or shards with {INDEX_FILE}"
    if "/" in name or "\\" in name or name in ("", ".", "..") or not name.isprintable():
        return Problem("file_name_unsafe", shown(name), "a path", expected, "Send plain file names.")
    if name.lower().endswith(_PICKLED):
        remedy = "A pickle can run code. Save with safe_serialization=True and upload the .safetensors file."
        return Problem("pickle_refused", shown(name), "a pickle file", expected, remedy)
    if name in _TOKENIZER:
        remedy = (
            "Leave it out: the base model's tokenizer and chat template serve every adapter. If yours was trained "
            "with another template, render the prompt yourself and send it as text to /v1/completions."
        )
        return Problem("tokenizer_file_refused", shown(name), "a file of the tokenizer", expected, remedy)
    return Problem("file_unknown", shown(name), "a file that is not served", expected, "Upload only these files.")


def check_files(folder: Path, max_bytes: int) -> list[Problem]:
    """Problems of what lies in the folder, no content read. Raises OSError where there is no such folder."""
    entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    problems = check_names(entry.name for entry in entries)
    known = [entry for entry in entries if is_adapter_file(entry.name)]
    problems += [problem for entry in known for problem in _kind_problem(entry)]
    sizes = {entry.name: entry.stat(follow_symlinks=False).st_size for entry in known}
    return problems + check_sizes(sizes, max_bytes)


def check_sizes(sizes: Mapping[str, int], max_bytes: int) -> list[Problem]:
    """sizes: bytes by name of an adapter's file."""
    problems = []
    for name, limit in ((CONFIG_FILE, MAX_CONFIG_BYTES), (INDEX_FILE, MAX_INDEX_BYTES)):
        if sizes.get(name, 0) > limit:
            problems.append(_too_large(name, sizes[name], limit))
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
