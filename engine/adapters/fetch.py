"""An adapter's files, from wherever they are published, to checked weights in host memory."""

import logging
import os
from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote, urlsplit

import obstore
from obstore.exceptions import BaseError as StoreError
from obstore.store import ObjectStore, from_url

from engine.adapters.bank import LoraBank
from engine.adapters.disk_cache import DiskCache
from engine.adapters.files import ADAPTER_FILES, INDEX_FILE, MAX_INDEX_BYTES, is_adapter_file
from engine.adapters.format import AdapterRefused, BaseShape, Limits, check_adapter, check_source
from engine.adapters.host_cache import Weights
from engine.adapters.known_checks import KnownChecks
from engine.adapters.load import FoldError, load_adapter, ready_for
from engine.adapters.lora_config import CONFIG_FILE
from engine.adapters.pool import AdapterUnavailable
from engine.adapters.scan import scan_values
from engine.adapters.shards import shards_of
from engine.adapters.source import Contents
from engine.adapters.spec import AdapterSpec
from engine.protocol import AdapterRef

log = logging.getLogger(__name__)

CHUNK_BYTES = 8 << 20


def adapter_loader(base: BaseShape, limits: Limits, disk: DiskCache, bank: LoraBank) -> Callable[[AdapterRef], Weights]:
    """The `load` of an `AdapterPool`. What it returns raises AdapterUnavailable.

    disk: keeps what came from another machine. Files of this one are not kept twice.
    """

    known = KnownChecks(scan_values)

    def checked_weights(adapter: AdapterRef, contents: Contents) -> Weights:
        _compare(adapter, contents)
        try:
            spec = known.spec_of(adapter.digest, contents, lambda: check_source(contents, base, limits, scan_values))
        except AdapterRefused as error:
            message = f"its files do not pass the check: {_first_line(error)}"
            raise AdapterUnavailable(message, permanent=True) from error
        return _weights(contents, spec, bank)

    def load(adapter: AdapterRef) -> Weights:
        kept = _kept(adapter, disk)
        if kept is not None:
            return checked_weights(adapter, kept)
        contents = _fetched(adapter, limits.max_bytes)
        weights = checked_weights(adapter, contents)
        if urlsplit(adapter.uri).scheme != "file":
            with disk.draft() as folder:
                for name, data in contents.files.items():
                    (folder / name).write_bytes(data)
                disk.keep(adapter.digest, folder)
        return weights

    return load


def _kept(adapter: AdapterRef, disk: DiskCache) -> Contents | None:
    with disk.reading(adapter.digest) as folder:
        contents = None if folder is None else read_folder(folder)
    if contents is not None and contents.digest() != adapter.digest:
        log.warning("a cached adapter's files have changed: fetching it again", extra={"digest": adapter.digest})
        disk.drop(adapter.digest)
        return None
    return contents


def read_folder(folder: Path) -> Contents:
    """An adapter's files. Raises OSError."""
    return Contents({path.name: _read(path) for path in folder.iterdir() if is_adapter_file(path.name)})


def _read(path: Path) -> bytearray:
    with path.open("rb", buffering=0) as file:
        data = bytearray(os.fstat(file.fileno()).st_size)
        at = 0
        while at < len(data) and (count := file.readinto(memoryview(data)[at:])):
            at += count
        return data


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


def _fetched(adapter: AdapterRef, max_bytes: int) -> Contents:
    try:
        store = from_url(adapter.uri)
        names = _names(store)
        sizes = {name: obstore.head(store, name)["size"] for name in names}
        if sum(sizes.values()) > max_bytes:
            message = f"its files have {sum(sizes.values())} bytes; the limit is {max_bytes}"
            raise AdapterUnavailable(message, permanent=True)
        if urlsplit(adapter.uri).scheme == "file":
            return read_folder(Path(unquote(urlsplit(adapter.uri).path)))
        return Contents({name: _download(store, name) for name in names})
    except FileNotFoundError as error:
        raise AdapterUnavailable(f"its files are missing: {_first_line(error)}", permanent=True) from error
    except (StoreError, OSError, ValueError) as error:
        raise AdapterUnavailable(f"its files cannot be fetched: {_first_line(error)}", permanent=False) from error


def _download(store: ObjectStore, name: str) -> bytearray:
    data = bytearray()
    for chunk in obstore.get(store, name).stream(min_chunk_size=CHUNK_BYTES):
        data += chunk
    return data


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


def _compare(adapter: AdapterRef, contents: Contents) -> None:
    if contents.digest() != adapter.digest:
        message = f"its files have digest {contents.digest()}, not {adapter.digest}"
        raise AdapterUnavailable(message, permanent=True)


def _weights(contents: Contents, spec: AdapterSpec, bank: LoraBank) -> Weights:
    try:
        weights = ready_for(load_adapter(contents, spec, bank.base), bank.dtype)
    except FoldError as error:
        raise AdapterUnavailable(f"its weights cannot be used: {error}", permanent=True) from error
    bank.prepare(weights)
    return weights


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n", 1)[0]
