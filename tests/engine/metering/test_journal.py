import shutil
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.metering import journal as journal_module
from engine.metering.journal import Journal, JournalError
from engine.protocol import Usage


def used(completion: int, device_ns: int = 5) -> Usage:
    return Usage(prompt_tokens=3, cached_tokens=1, completion_tokens=completion, device_ns=device_ns)


def reopened(journal: Journal, home: Path) -> Journal:
    """As after `kill -9`: the files are what they are, nobody said goodbye."""
    journal.close()
    return Journal(home)


def ended(journal: Journal, name: str, completion: int = 2) -> None:
    journal.start(name, "acme", None)
    journal.end(name, used(completion), "stop")
    journal.commit()


def test_lines_come_back_in_order_page_by_page(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    for i in range(7):
        ended(journal, f"r{i}", i)
    for each in (journal, reopened(journal, tmp_path)):
        assert each.last_position == 7
        pages = [each.read(after, 3) for after in (0, 3, 6, 7, 99)]
        assert [[line.request_id for line in page] for page in pages] == [
            ["r0", "r1", "r2"],
            ["r3", "r4", "r5"],
            ["r6"],
            [],
            [],
        ]
        assert each.read(-5, 1)[0].position == 1
        assert each.read(0, -1) == each.read(0, 0) == []
        each.check_integrity()
    line = each.read(2, 1)[0]
    assert (line.tenant, line.usage, line.finish_reason) == ("acme", used(2), "stop")
    assert line.started_at <= line.finished_at


def test_what_was_open_is_closed_at_the_next_start_with_what_was_answered_for(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    ended(journal, "done")
    for name in ("streaming", "waiting"):
        journal.start(name, "acme", "adv_1")
    journal.progress([("streaming", used(1))])
    journal.commit()
    journal.progress([("streaming", used(2))])
    journal.commit()
    journal.progress([("streaming", used(3))])  # never written: its events never left either
    again = reopened(journal, tmp_path)
    assert again.closed_at_start == 2
    assert [(line.request_id, line.finish_reason, line.usage) for line in again.read(1, 9)] == [
        ("streaming", "engine_restart", used(2)),
        ("waiting", "engine_restart", Usage(0, 0, 0, 0)),
    ]
    third = reopened(again, tmp_path)
    assert (third.closed_at_start, third.last_position) == (0, 3)
    third.check_integrity()


def test_engine_id_stays_and_ids_are_known_for_ever(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    ended(journal, "old")
    again = reopened(journal, tmp_path)
    assert again.engine_id == journal.engine_id
    assert again.knows("old")
    assert not again.knows("new")
    with pytest.raises(AssertionError, match="has begun before"):
        again.start("old", "acme", None)


@settings(deadline=None, max_examples=60)
@given(cut=st.floats(0, 1), name=st.sampled_from(["open.log", "ended.log"]))
def test_a_torn_last_line_costs_that_line_only(tmp_path_factory: pytest.TempPathFactory, cut: float, name: str) -> None:
    """Cut a file anywhere, as a crash inside write(2) would: whole lines before the cut all count."""
    home = tmp_path_factory.mktemp("journal")
    journal = Journal(home)
    ended(journal, "a")
    ended(journal, "b")
    journal.start("c", "acme", None)
    for completion in (1, 2, 3):
        journal.progress([("c", used(completion))])
        journal.commit()
    journal.close()
    path = home / "journal" / name
    data = path.read_bytes()
    kept = data[: int(cut * len(data))]
    path.write_bytes(kept)
    again = Journal(home)
    again.check_integrity()
    lines = kept.count(b"\n")
    if name == "ended.log":
        assert [line.request_id for line in again.read(0, lines)] == ["a", "b"][:lines]
    elif lines:
        line = again.read(2, 9)[0]
        assert (line.request_id, line.usage.completion_tokens) == ("c", lines - 1)
    else:
        assert again.last_position == 2
    ended(again, "d")
    assert again.read(again.last_position - 1, 9)[0].request_id == "d"
    again.close()
    shutil.rmtree(home)


@pytest.mark.parametrize("name", ["open.log", "ended.log"])
def test_damage_in_the_middle_is_refused_in_words(tmp_path: Path, name: str) -> None:
    journal = Journal(tmp_path)
    ended(journal, "a")
    ended(journal, "b")
    journal.start("c", "acme", None)
    journal.progress([("c", used(1))])
    journal.commit()
    journal.close()
    path = tmp_path / "journal" / name
    data = bytearray(path.read_bytes())
    data[20] ^= 1
    path.write_bytes(data)
    with pytest.raises(JournalError, match=f"{name} is damaged at byte 0"):
        Journal(tmp_path)


def test_one_home_one_engine(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    with pytest.raises(JournalError, match="in use by another engine"):
        Journal(tmp_path)
    journal.close()
    Journal(tmp_path).close()


def test_ended_lines_are_on_disk_before_commit_returns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal, synced = Journal(tmp_path), list[int]()
    sync = journal_module.os.fdatasync
    monkeypatch.setattr(journal_module.os, "fdatasync", lambda file: (synced.append(file), sync(file))[1])
    journal.start("a", "acme", None)
    journal.commit()
    assert synced == []
    journal.end("a", used(1), "stop")
    journal.commit()
    assert len(synced) == 1


@pytest.mark.parametrize("written", [0, 7])
def test_a_full_disk_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: int) -> None:
    journal, write = Journal(tmp_path), journal_module.os.write
    journal.start("a", "acme", None)
    journal.end("a", used(1), "stop")

    def full(file: int, data: bytes) -> int:
        if len(data) > written:
            write(file, data[:written])
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(journal_module.os, "write", full)
        for _ in range(3):
            with pytest.raises(OSError, match="No space"):
                journal.commit()
    journal.commit()
    assert [line.request_id for line in reopened(journal, tmp_path).read(0, 9)] == ["a"]


def test_open_log_does_not_grow_with_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_module, "OPEN_LOG_BYTES", 2000)
    journal, path = Journal(tmp_path), tmp_path / "journal" / "open.log"
    journal.start("long", "acme", None)
    for completion in range(1, 300):
        journal.progress([("long", used(completion))])
        journal.commit()
        assert path.stat().st_size < 2300
    assert oct(path.stat().st_mode & 0o777) == "0o600"
    again = reopened(journal, tmp_path)
    assert [line.usage.completion_tokens for line in again.read(0, 9)] == [299]
    assert path.stat().st_size == 0


def test_acknowledged_only_goes_forward_and_not_past_the_end(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    for i in range(3):
        ended(journal, f"r{i}")
    for position in (2, 1, 9, -1):
        journal.acknowledge(position)
    assert journal.acknowledged == 2
    assert reopened(journal, tmp_path).acknowledged == 2
