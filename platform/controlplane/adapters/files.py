"""Which files an adapter consists of. Names are a closed list, so none can lead out of its folder."""

from typing import Final

from django.conf import settings

from controlplane.errors import InvalidRequest, TooLarge
from engine.adapters.format import check_names, is_adapter_file

CONFIG: Final = "adapter_config.json"
WEIGHTS: Final = "adapter_model.safetensors"
INDEX: Final = "adapter_model.safetensors.index.json"
MAX_CONFIG_BYTES: Final = 1024 * 1024
MAX_INDEX_BYTES: Final = 4 * 1024 * 1024
_PICKLES: Final = (".bin", ".pt", ".pth", ".pkl", ".pickle", ".ckpt")


def check_file_name(name: str) -> None:
    """InvalidRequest for anything but a config, weights, or shards with their index; with the remedy for the ones
    people really have."""
    if is_adapter_file(name):
        return
    shown = repr(name[:100])
    if name.lower().endswith(_PICKLES):
        raise InvalidRequest(
            f"{shown} is a pickle file, which can run code when it is read, so it is not taken: "
            "save the adapter with save_pretrained(..., safe_serialization=True) and upload adapter_model.safetensors",
            param="files",
            code="pickle_refused",
        )
    if any(problem.code == "tokenizer_file_refused" for problem in check_names([name])):
        raise InvalidRequest(
            f"{shown} belongs to a tokenizer: leave it out. The base model's tokenizer and chat template serve every "
            "adapter; if yours was trained with another template, send rendered prompts to /v1/completions",
            param="files",
            code="tokenizer_file_refused",
        )
    raise InvalidRequest(
        f"{shown} is not a file of an adapter: upload exactly {CONFIG} and {WEIGHTS} "
        f"(or its shards and {INDEX}), as save_pretrained writes them",
        param="files",
        code="unknown_file",
    )


def check_file_sizes(sizes: dict[str, int]) -> None:
    """sizes: bytes by name. InvalidRequest unless they are all files of one adapter, TooLarge over a limit."""
    for problem in check_names(sizes):
        if problem.code == "file_missing":
            raise InvalidRequest(
                f"files lacks {problem.where}: an adapter is {CONFIG} and {WEIGHTS}, or its shards and {INDEX}",
                param="files",
                code="file_missing",
            )
        raise InvalidRequest(f"files: {problem}", param="files")
    small = {CONFIG: MAX_CONFIG_BYTES, INDEX: MAX_INDEX_BYTES}
    weights = sum(size for name, size in sizes.items() if name not in small)
    whole = WEIGHTS if WEIGHTS in sizes else "the set of shards"
    for name, size, limit in (
        *((name, sizes.get(name, 0), limit) for name, limit in small.items()),
        (whole, weights, settings.MAX_ADAPTER_BYTES),
    ):
        if size > limit:
            raise TooLarge(
                f"{name} is {size} bytes: the limit is {limit}. Use a smaller rank or fewer target modules, "
                "and save in bfloat16",
                param="files",
                code="adapter_too_large",
            )
