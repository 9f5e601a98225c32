"""The engine's journal: the authority on what every request used. It survives `kill -9` and, for ended requests,
a power cut.

Two files, one line per record, each line led by the CRC-32 of its JSON:

- `ended.log` has one `JournalLine` per ended request, in the order of their positions (1, 2, ...), for ever. Synced to
  disk before the last event of a request is sent.
- `open.log` has what is under way: a start line at admission, then what each step added. Written before the events
  of that step are sent; begun anew when nothing is open, and rewritten when it has grown large.
"""

import fcntl
import os
import time
from array import array
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from uuid import uuid4
from zlib import crc32

import msgspec

from engine.protocol import JournalLine, Usage

OPEN_LOG_BYTES = 4 << 20


class JournalError(Exception):
    """The journal's files cannot be used; the message says which and what to do."""


class OpenRequest(msgspec.Struct, tag="start"):
    """A request that has begun and not ended. Token counts are those already answered for."""

    request_id: str
    tenant: str
    adapter_version: str | None
    started_at: float
    usage: Usage = Usage(prompt_tokens=0, cached_tokens=0, completion_tokens=0, device_ns=0)


class _Progress(msgspec.Struct, tag="step"):
    """What the named requests have used after a step, as [request_id, usage] pairs."""

    used: list[tuple[str, Usage]]


@dataclass(frozen=True, slots=True)
class Ending:
    request_id: str
    usage: Usage
    finish_reason: str


_encode = msgspec.json.Encoder().encode
_decode_open = msgspec.json.Decoder(OpenRequest | _Progress).decode
_decode_ended = msgspec.json.Decoder(JournalLine).decode


class Journal:
    """One writer, the step thread: `start`, `progress`, `end` collect lines and `commit` writes them. `read` may be
    called from any thread.

    Opening a journal ends the requests that the last process left open, as `engine_restart`.
    Raises JournalError where another engine uses the folder or a file is damaged other than by a torn last line.
    """

    def __init__(self, home: Path) -> None:
        folder = home / "journal"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._lock = _lock_folder(folder)
        self.engine_id = _engine_id(folder / "engine_id")
        self._open_path = folder / "open.log"
        self._acknowledged_path = folder / "acknowledged"
        self._ended = _LineFile(folder / "ended.log")
        self._offsets = array("Q")  # of the line with position i + 1
        self._ended_ids: set[int] = set()
        self._open: dict[str, OpenRequest] = {}
        self._open_lines: list[bytes] = []
        self._endings: list[Ending] = []
        for offset, line in self._ended.recover():
            self._index(offset, _decode_ended(line).request_id)
        self._open_file = _LineFile(self._open_path)
        self.closed_at_start = self._close_left_open()

    @property
    def last_position(self) -> int:
        return len(self._offsets)

    @property
    def open_requests(self) -> dict[str, OpenRequest]:
        return dict(self._open)

    def knows(self, request_id: str) -> bool:
        """Whether the request has begun before, in this process or an earlier one."""
        return request_id in self._open or _short(request_id) in self._ended_ids

    def start(self, request_id: str, tenant: str, adapter_version: str | None) -> None:
        assert not self.knows(request_id), f"{request_id} has begun before"
        opened = OpenRequest(request_id, tenant, adapter_version, time.time())
        self._open[request_id] = opened
        self._open_lines.append(_line(_encode(opened)))

    def progress(self, used: list[tuple[str, Usage]]) -> None:
        """What requests have used so far, in all."""
        for request_id, usage in used:
            self._open[request_id].usage = usage
        if used:
            self._open_lines.append(_line(_encode(_Progress(used))))

    def end(self, request_id: str, usage: Usage, finish_reason: str) -> None:
        """finish_reason: a FinishReason, or `error:<code>`."""
        assert request_id in self._open, f"{request_id} is not open"
        self._endings.append(Ending(request_id, usage, finish_reason))

    def commit(self) -> None:
        """Make everything collected durable. On OSError nothing is lost: call it again when the disk is well."""
        if self._open_lines:
            self._open_file.append(b"".join(self._open_lines))
            self._open_lines.clear()
        if self._endings:
            self._write_endings()
            self._endings.clear()
        if self._open_file.size > OPEN_LOG_BYTES or (self._open_file.size and not self._open):
            self._rewrite_open()

    def read(self, after: int, limit: int) -> list[JournalLine]:
        """Ended requests with position > `after`, at most `limit`."""
        first, last = max(after, 0), min(max(after, 0) + max(limit, 0), len(self._offsets))
        if first >= last:
            return []
        end = self._offsets[last] if last < len(self._offsets) else self._ended.size
        data = self._ended.read(self._offsets[first], end)
        return [_decode_ended(_checked(line)) for line in data.splitlines()[: last - first]]

    def acknowledge(self, position: int) -> None:
        """A reader has stored every line up to `position`. Kept for the operator: lines stay for ever all the same."""
        if 0 < position <= self.last_position and position > self.acknowledged:
            draft = self._acknowledged_path.with_suffix(".new")
            draft.write_text(str(position))
            draft.replace(self._acknowledged_path)

    @property
    def acknowledged(self) -> int:
        return int(self._acknowledged_path.read_text()) if self._acknowledged_path.exists() else 0

    def close(self) -> None:
        self._ended.close()
        self._open_file.close()
        os.close(self._lock)

    def check_integrity(self) -> None:
        """Positions count up without a gap, no request ends twice, none is both open and ended."""
        lines = self.read(0, len(self._offsets))
        assert [line.position for line in lines] == list(range(1, len(lines) + 1))
        assert len({line.request_id for line in lines}) == len(lines)
        assert not {line.request_id for line in lines} & self._open.keys()

    def _write_endings(self) -> None:
        lines, data, offset = list[tuple[int, str]](), list[bytes](), self._ended.size
        for position, ending in enumerate(self._endings, self.last_position + 1):
            line = _line(_encode(self._ended_line(position, ending)))
            lines.append((offset, ending.request_id))
            data.append(line)
            offset += len(line)
        self._ended.append(b"".join(data), sync=True)
        for start, request_id in lines:
            self._index(start, request_id)
            del self._open[request_id]

    def _ended_line(self, position: int, ending: Ending) -> JournalLine:
        opened = self._open[ending.request_id]
        return JournalLine(
            position=position,
            request_id=ending.request_id,
            tenant=opened.tenant,
            adapter_version=opened.adapter_version,
            usage=ending.usage,
            finish_reason=ending.finish_reason,
            started_at=opened.started_at,
            finished_at=time.time(),
        )

    def _index(self, offset: int, request_id: str) -> None:
        self._ended_ids.add(_short(request_id))
        self._offsets.append(offset)

    def _close_left_open(self) -> int:
        for _, line in self._open_file.recover():
            record = _decode_open(line)
            if isinstance(record, OpenRequest):
                if not self.knows(record.request_id):
                    self._open[record.request_id] = record
            else:
                for request_id, usage in record.used:
                    if request_id in self._open:
                        self._open[request_id].usage = usage
        for opened in self._open.values():
            self.end(opened.request_id, opened.usage, "engine_restart")
        closed = len(self._endings)
        self.commit()
        return closed

    def _rewrite_open(self) -> None:
        """Replace open.log by one start line per open request. A crash leaves either the old file or the new one."""
        draft = self._open_path.with_suffix(".new")
        draft.touch(mode=0o600)
        draft.write_bytes(b"".join(_line(_encode(opened)) for opened in self._open.values()))
        draft.replace(self._open_path)
        self._open_file.close()
        self._open_file = _LineFile(self._open_path)


class _LineFile:
    """An append-only file of checked lines. A failed append leaves no half line behind."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        self.size = os.fstat(self._file).st_size

    def recover(self) -> list[tuple[int, bytes]]:
        """(offset, JSON) of every line; a torn last line is cut off. Raises JournalError on damage elsewhere."""
        data, offset, records = self.read(0, self.size), 0, list[tuple[int, bytes]]()
        for line in data.splitlines(keepends=True):
            try:
                records.append((offset, _checked(line, whole=True)))
            except ValueError:
                if offset + len(line) < len(data):
                    raise JournalError(
                        f"{self._path} is damaged at byte {offset}: restore it, or move it away to start a new journal"
                    ) from None
                self._cut(offset)
                break
            offset += len(line)
        return records

    def append(self, data: bytes, *, sync: bool = False) -> None:
        written = 0
        try:
            while written < len(data):
                written += os.write(self._file, data[written:])
            if sync:
                os.fdatasync(self._file)
        except OSError:
            self._cut(self.size)
            raise
        self.size += len(data)

    def read(self, start: int, end: int) -> bytes:
        return os.pread(self._file, end - start, start)

    def close(self) -> None:
        os.close(self._file)

    def _cut(self, size: int) -> None:
        os.ftruncate(self._file, size)
        self.size = size


def _line(record: bytes) -> bytes:
    return b"%08x %s\n" % (crc32(record), record)


def _checked(line: bytes, *, whole: bool = False) -> bytes:
    """The JSON of a line. Raises ValueError where it is torn or altered. whole: its line end has to be there too."""
    checksum, _, record = line.rstrip(b"\n").partition(b" ")
    if len(checksum) != 8 or int(checksum, 16) != crc32(record) or (whole and not line.endswith(b"\n")):
        raise ValueError("a line does not match its checksum")
    return record


def _short(request_id: str) -> int:
    """64 bits of a request id: the memory of all requests that ever ended has to stay small."""
    return int.from_bytes(blake2b(request_id.encode(), digest_size=8).digest(), "big")


def _lock_folder(folder: Path) -> int:
    """Held until the process ends, however it ends."""
    descriptor = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        message = f"{folder} is in use by another engine: stop it, or give this one a home of its own"
        raise JournalError(message) from None
    return descriptor


def _engine_id(path: Path) -> str:
    """Names this journal, for as long as the folder lives."""
    if not path.exists():
        draft = path.with_suffix(".new")
        draft.write_text(f"eng_{uuid4().hex}")
        draft.replace(path)
    return path.read_text().strip()
