"""Which files an adapter consists of. Names are a closed list, so none can lead out of its folder."""

from typing import Final

from django.conf import settings

from controlplane.errors import InvalidRequest, TooLarge

CONFIG: Final = "adapter_config.json"
WEIGHTS: Final = "adapter_model.safetensors"
FILE_NAMES: Final = (CONFIG, WEIGHTS)
MAX_CONFIG_BYTES: Final = 1024 * 1024
_PICKLES: Final = (".bin", ".pt", ".pth", ".pkl", ".pickle", ".ckpt")


def check_file_name(name: str) -> None:
    """InvalidRequest for anything but the two files, with the remedy for the ones people really have."""
    if name in FILE_NAMES:
        return
    shown = repr(name[:100])
    if name.lower().endswith(_PICKLES):
        raise InvalidRequest(
            f"{shown} is a pickle file, which can run code when it is read, so it is not taken: "
            "save the adapter with save_pretrained(..., safe_serialization=True) and upload adapter_model.safetensors",
            param="files",
            code="pickle_refused",
        )
    raise InvalidRequest(
        f"{shown} is not a file of an adapter: upload exactly {CONFIG} and {WEIGHTS}, "
        "as PEFT's save_pretrained writes them",
        param="files",
        code="unknown_file",
    )


def check_file_sizes(sizes: dict[str, int]) -> None:
    """sizes: bytes by name. InvalidRequest unless both files are named, TooLarge over a limit."""
    for name in FILE_NAMES:
        if name not in sizes:
            raise InvalidRequest(
                f"files lacks {name}: an adapter is {CONFIG} and {WEIGHTS}", param="files", code="file_missing"
            )
    limits = {CONFIG: MAX_CONFIG_BYTES, WEIGHTS: settings.MAX_ADAPTER_BYTES}
    for name, size in sizes.items():
        if size > limits[name]:
            raise TooLarge(
                f"{name} is {size} bytes: the limit is {limits[name]}. Use a smaller rank or fewer target modules, "
                "and save in bfloat16",
                param="files",
                code="adapter_too_large",
            )
