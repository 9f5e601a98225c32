"""An adapter's files, from wherever they are published, to checked weights in host memory."""

import logging
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import obstore
from obstore.exceptions import BaseError as StoreError
from obstore.store import ObjectStore, from_url

from engine.adapters.base_weights import BaseWeights
from engine.adapters.disk_cache import DiskCache
from engine.adapters.files import ADAPTER_FILES, INDEX_FILE, MAX_INDEX_BYTES, folder_digest
from engine.adapters.format import AdapterRefused, BaseShape, Limits, check_adapter
from engine.adapters.host_cache import Weights
from engine.adapters.load import FoldError, load_adapter
from engine.adapters.lora_config import CONFIG_FILE
from engine.adapters.pool import AdapterUnavailable
from engine.adapters.shards import shards_of
from engine.protocol import AdapterRef

log = logging.getLogger(__name__)

CHUNK_BYTES = 8 << 20


def adapter_loader(
    base: BaseShape, limits: Limits, disk: DiskCache, base_weights: BaseWeights
) -> Callable[[AdapterRef], Weights]:
    """The `load` of an `AdapterPool`. What it returns raises AdapterUnavailable.

    disk: keeps what came from another machine. Files of this one are not kept twice.
    """

    def load(adapter: AdapterRef) -> Weights:
        with disk.reading(adapter.digest) as kept:
            if kept is not None and folder_digest(kept) == adapter.digest:
                return _checked_weights(adapter, kept, base, limits, base_weights)
        if kept is not None:
            log.warning("a cached adapter's files have changed: fetching it again", extra={"digest": adapter.digest})
            disk.drop(adapter.digest)
        # The check reads a folder that nobody else can change between check and use.
        with disk.draft() as folder:
            _download(adapter, folder, limits.max_bytes)
            weights = _checked_weights(adapter, folder, base, limits, base_weights)
            if urlsplit(adapter.uri).scheme != "file":
                disk.keep(adapter.digest, folder)
            return weights

    return load


def folder_reference(folder: Path, base: BaseShape, limits: Limits) -> AdapterRef:
    """A local folder as requests would name it. Raises AdapterUnavailable where it cannot be served."""
    try:
        spec = check_adapter(folder, base, limits)
    except AdapterRefused as error:
        message = f"adapter {folder} does not pass the check: {_first_line(error)}"
        raise AdapterUnavailable(message, permanent=True) from error
    except OSError as error:
        message = f"adapter {folder} cannot be read: {error.strerror}"
        raise AdapterUnavailable(message, permanent=True) from error
    return AdapterRef(folder.name, folder.resolve().as_uri(), spec.digest, spec.max_rank)


def _download(adapter: AdapterRef, folder: Path, max_bytes: int) -> None:
    try:
        store = from_url(adapter.uri)
        names = _names(store)
        size = sum(obstore.head(store, name)["size"] for name in names)
        if size > max_bytes:
            raise AdapterUnavailable(f"its files have {size} bytes; the limit is {max_bytes}", permanent=True)
        for name in names:
            with (folder / name).open("wb") as file:
                for chunk in obstore.get(store, name).stream(min_chunk_size=CHUNK_BYTES):
                    file.write(chunk)
    except FileNotFoundError as error:
        raise AdapterUnavailable(f"its files are missing: {_first_line(error)}", permanent=True) from error
    except (StoreError, ValueError) as error:
        raise AdapterUnavailable(f"its files cannot be fetched: {_first_line(error)}", permanent=False) from error


def _names(store: ObjectStore) -> tuple[str, ...]:
    """The adapter's files: tensors in one file, or in the shards of an index where there is one."""
    try:
        index = obstore.head(store, INDEX_FILE)
    except FileNotFoundError:
        return ADAPTER_FILES
    if index["size"] > MAX_INDEX_BYTES:
        raise ValueError(f"{INDEX_FILE} has {index['size']} bytes; the limit is {MAX_INDEX_BYTES}")
    shards = shards_of(bytes(obstore.get(store, INDEX_FILE).bytes()))
    return (CONFIG_FILE, INDEX_FILE, *shards)


def _checked_weights(
    adapter: AdapterRef, folder: Path, base: BaseShape, limits: Limits, base_weights: BaseWeights
) -> Weights:
    digest = folder_digest(folder)
    if digest != adapter.digest:
        raise AdapterUnavailable(f"its files have digest {digest}, not {adapter.digest}", permanent=True)
    try:
        spec = check_adapter(folder, base, limits)
    except AdapterRefused as error:
        raise AdapterUnavailable(f"its files do not pass the check: {_first_line(error)}", permanent=True) from error
    try:
        return load_adapter(folder, spec, base_weights)
    except FoldError as error:
        raise AdapterUnavailable(f"its weights cannot be used: {error}", permanent=True) from error


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n", 1)[0]
