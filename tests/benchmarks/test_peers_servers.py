"""What drives the peers: the streaming client, the workers of other environments, the files that they are given."""

import asyncio
import dataclasses
import json
import random
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
from gguf import GGUFReader
from transformers import AutoModelForCausalLM

from benchmarks import peers_setup
from benchmarks.comparison.adapters import write_adapters
from benchmarks.comparison.gguf_files import NotConvertible, write_adapter, write_model
from benchmarks.comparison.http_client import Door, ask_all
from benchmarks.comparison.in_process import InProcess
from benchmarks.comparison.peer import PeerFailed
from benchmarks.comparison.processes import Program, family, peak_bytes
from benchmarks.comparison.referee import Referee
from benchmarks.comparison.token_ids import by_id, by_text
from benchmarks.comparison.work import Ask, Job, Workload, check_job
from benchmarks.comparison.worker import Worker
from controlplane.inference.logprob_shapes import token_text
from engine.capacity import read_shape
from engine.decoding.tokenizer import Tokenizer
from tests.engine.tiny import VOCAB, make_model

PYTHON = Path(sys.executable)
JOB = Job((Ask((5, 6), None, 2), Ask((7,), "adapter-0", 2, after=0)))


def _event(body: object) -> bytes:
    return b"data: " + (body if isinstance(body, bytes) else json.dumps(body).encode()) + b"\n\n"


def _piece(text: str, token: int) -> bytes:
    return _event({"choices": [{"text": text, "finish_reason": None, "logprobs": {"tokens": [f"token_id:{token}"]}}]})


USAGE = _event({"choices": [], "usage": {"completion_tokens": 2}})
GOOD = [_piece("a", 3), _piece("b", 4), USAGE + _event(b"[DONE]")]


class FakeDoor:
    """Sends `parts`, one chunk each; what was asked is kept."""

    def __init__(self, parts: list[bytes], status: str = "200 OK", pause: float = 0.0, cut: bool = False) -> None:
        self.parts, self.status, self.pause, self.cut = parts, status, pause, cut
        self.asked: list[dict[str, object]] = []
        self.port = 0

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        length = int(head.split(b"content-length:")[1].split(b"\r\n")[0])
        self.asked.append(json.loads(await reader.readexactly(length)))
        writer.write(f"HTTP/1.1 {self.status}\r\ntransfer-encoding: chunked\r\n\r\n".encode())
        for part in self.parts:
            await asyncio.sleep(self.pause)
            writer.write(b"%x\r\n%b\r\n" % (len(part), part))
        if not self.cut:
            writer.write(b"0\r\n\r\n")
        writer.close()

    @contextmanager
    def serving(self) -> Iterator["FakeDoor"]:
        loop, ready = asyncio.new_event_loop(), threading.Event()

        async def start() -> None:
            server = await asyncio.start_server(self._answer, "127.0.0.1", 0)
            self.port = server.sockets[0].getsockname()[1]
            ready.set()

        def work() -> None:
            loop.run_until_complete(start())
            loop.run_forever()

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        assert ready.wait(10)
        yield self
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)

    @property
    def door(self) -> Door:
        return Door(self.port, "key", "base", by_id, {"return_tokens_as_token_ids": True})


def test_a_stream_is_read_piece_by_piece_however_it_is_cut() -> None:
    whole = b"".join(GOOD)
    parts = [whole[:7], whole[7:90], whole[90:91], whole[91:]]
    with FakeDoor(parts).serving() as fake:
        first, second = ask_all(fake.door, JOB, 20, with_ids=True)
    assert (first.ids, first.tokens, len(first.times)) == ((3, 4), 2, 2)
    assert first.asked < first.times[0] <= second.times[0]
    assert [each["model"] for each in fake.asked] == ["base", "adapter-0"]
    assert all(each["ignore_eos"] and each["prompt"] in ([5, 6], [7]) for each in fake.asked)


def test_a_request_waits_for_the_first_token_of_another() -> None:
    with FakeDoor(GOOD, pause=0.1).serving() as fake:
        first, second = ask_all(fake.door, JOB, 20, with_ids=False)
    assert second.asked >= first.times[0]
    assert "logprobs" not in fake.asked[0]


@pytest.mark.parametrize(
    "fake, said",
    [
        (FakeDoor([b'{"error": "no such model"}'], status="404 Not Found"), "(?s)404 Not Found.*no such model"),
        (FakeDoor(GOOD[:1], cut=True), "the connection broke"),
        (FakeDoor([_event({"error": {"message": "boom"}})]), "ended in an error.*boom"),
        (FakeDoor(GOOD[:2]), "ended without its usage"),
        (FakeDoor([_event(b"{half")]), "not what OpenAI's would be"),
    ],
    ids=["status", "cut", "error", "usage", "json"],
)
def test_what_goes_wrong_is_said(fake: FakeDoor, said: str) -> None:
    with fake.serving(), pytest.raises(PeerFailed, match=said):
        ask_all(fake.door, JOB, 20, with_ids=True)


def test_a_server_that_is_too_slow_has_failed() -> None:
    with FakeDoor(GOOD, pause=5).serving() as fake, pytest.raises(PeerFailed, match="2 requests took over 0 s"):
        ask_all(fake.door, JOB, 0.2, with_ids=False)


class Draws:
    def draw(self, count: int, source: random.Random) -> tuple[int, ...]:
        return tuple(source.randrange(1, VOCAB) for _ in range(count))


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    return make_model(tmp_path_factory.mktemp("model") / "tiny", tie_word_embeddings=True)


@pytest.fixture(scope="module")
def adapters(model: Path, tmp_path_factory) -> list[object]:
    return write_adapters(tmp_path_factory.mktemp("adapters"), read_shape(model), model.name, 4, strength=0.2)


def test_peft_answers_with_each_adapter_and_the_referee_sees_a_swap(model: Path, adapters, tmp_path) -> None:
    settings = {"model": str(model), "adapters": {each.name: str(each.path) for each in adapters}, "threads": 1}
    peer = InProcess("PEFT", PYTHON, "peft_worker", settings, tmp_path, is_static=True)
    judge = Referee(PYTHON, settings, tmp_path)
    try:
        mixed = Workload(name="mixed", at_once=4, prompt=4, answer=4, adapters=4)
        peer.prepare(mixed)
        job = check_job(mixed, Draws(), 4)
        job = Job((*job.asks, Ask((9, 8, 7), None, 4), Ask((9, 8), "adapter-1", 4, after=0)))
        answers = peer.run(job, 60)
        assert judge.faults(job, answers) is None
        swapped = [answers[1], answers[0], *answers[2:]]
        job = Job(tuple(dataclasses.replace(ask, prompt=job.asks[0].prompt) for ask in job.asks[:2]))
        assert judge.faults(job, peer.run(job, 60)) is None
        assert "wrong answers for" in str(judge.faults(job, list(reversed(peer.run(job, 60)))))
        assert "1 tokens where 4" in str(judge.faults(job, [dataclasses.replace(swapped[0], ids=(1,)), swapped[1]]))
        assert peer.peak_bytes() > 10_000_000
    finally:
        peer.stop()
        judge.stop()
    assert (
        peer.cannot(Workload(name="late", at_once=1, prompt=1, answer=1, late=1)) == "nothing joins a batch that runs"
    )


def test_a_worker_that_ends_is_noticed(tmp_path) -> None:
    with pytest.raises(PeerFailed, match=r"it ended: .*no_such_worker"):
        Worker(PYTHON, "no_such_worker", {}, tmp_path / "log")


def test_a_server_chooses_its_own_threads(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("OMP_WAIT_POLICY", "passive")
    monkeypatch.setenv("HERE", "yes")
    code = "import os; print(os.environ.get('OMP_WAIT_POLICY'), os.environ['HERE'], os.environ['THERE'])"
    program = Program([PYTHON, "-c", code], tmp_path / "log", {"THERE": "too"})
    assert _soon(lambda: program.has_ended)
    assert program.last_words() == "None yes too"


@pytest.mark.parametrize("orphaned", [False, True])
def test_a_program_ends_with_all_that_it_started(orphaned: bool, tmp_path) -> None:
    child = "import os, time; print(os.getpid(), flush=True); time.sleep(99)"
    code = f"import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', {child!r}])"
    program = Program([PYTHON, "-c", code + ("" if orphaned else "; time.sleep(99)")], tmp_path / "log", {})
    assert _soon(lambda: program.last_words().isdigit() and program.has_ended is orphaned)
    pid = int(program.last_words())
    assert _lives(pid)
    if not orphaned:
        assert family(program.pid) == [program.pid, pid]
        assert peak_bytes(program.pid) > 1_000_000
    program.stop()
    program.stop()
    assert program.has_ended
    assert _soon(lambda: not _lives(pid))


def _soon(holds: Callable[[], bool]) -> bool:
    end = time.monotonic() + 30
    while not holds() and time.monotonic() < end:
        time.sleep(0.02)
    return holds()


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def test_the_converted_model_is_the_model(model: Path, tmp_path) -> None:
    write_model(model, tmp_path / "model.gguf")
    found = {tensor.name: tensor for tensor in GGUFReader(tmp_path / "model.gguf").tensors}
    want = AutoModelForCausalLM.from_pretrained(model, dtype=torch.bfloat16).state_dict()
    q = want["model.layers.1.self_attn.q_proj.weight"]
    assert len(found) == len({tensor.data_ptr() for tensor in want.values()})
    assert _bf16(found["token_embd.weight"]).equal(want["model.embed_tokens.weight"])
    assert _bf16(found["blk.1.ffn_down.weight"]).equal(want["model.layers.1.mlp.down_proj.weight"])
    turned = _bf16(found["blk.1.attn_q.weight"])
    # Row j of a head's first half and of its second become rows 2j and 2j + 1.
    for head, j in ((0, 0), (0, 5), (2, 7)):
        assert turned[16 * head + 2 * j].equal(q[16 * head + j])
        assert turned[16 * head + 2 * j + 1].equal(q[16 * head + 8 + j])


def _bf16(tensor: object) -> torch.Tensor:
    raw = torch.from_numpy(tensor.data.copy())  # type: ignore[attr-defined]
    return raw.view(torch.bfloat16)


def test_a_converted_adapter_turns_b_of_q_and_k_alone(model: Path, adapters, tmp_path) -> None:
    write_adapter(adapters[2], tmp_path / "adapter.gguf", read_shape(model))
    reader = GGUFReader(tmp_path / "adapter.gguf")
    names = {tensor.name for tensor in reader.tensors}
    assert len(names) == 2 * 2 * 7
    assert {"blk.0.attn_q.weight.lora_a", "blk.1.ffn_down.weight.lora_b"} <= names
    assert reader.fields["adapter.lora.alpha"].contents() == adapters[2].rank


def test_a_model_that_llama_cpp_would_misread_is_not_converted(tmp_path) -> None:
    for changes, said in (({"model_type": "qwen3"}, "of type qwen3"), ({"rope_scaling": {"type": "yarn"}}, "yarn")):
        folder = tmp_path / said.split()[-1]
        make_model(folder)
        config = json.loads((folder / "config.json").read_text())
        config.pop("rope_parameters", None)
        (folder / "config.json").write_text(json.dumps(config | changes))
        with pytest.raises(NotConvertible, match=said):
            write_model(folder, tmp_path / "out.gguf")


def test_every_token_is_found_by_what_the_door_calls_it(base_model: Path) -> None:
    ours, find = Tokenizer(base_model, vocab_size=49_152, context_len=8192), by_text(base_model)
    pieces = [ours.piece(token) for token in range(49_152)]
    assert len({*pieces}) == len(pieces)
    assert [find(token_text(piece, "bytes:")) for piece in pieces] == [*range(49_152)]
    with pytest.raises(PeerFailed, match="no token of the model"):
        find("no such token")


def test_a_peer_that_cannot_be_built_ends_no_other(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setenv("VENEER_HOME", str(tmp_path))
    monkeypatch.setattr(peers_setup.Environment, "create", lambda self: self.folder.mkdir(parents=True))

    def fails(env: peers_setup.Environment) -> None:
        env.run(PYTHON, "-c", "print('no compiler'); raise SystemExit(3)")

    def hangs(env: peers_setup.Environment) -> None:
        env.run(PYTHON, "-c", "import time; time.sleep(99)")

    monkeypatch.setattr(peers_setup, "PINS", {name: (f"{name}==1",) for name in ("one", "two", "three")})
    monkeypatch.setattr(peers_setup, "RECIPES", {"one": fails, "two": hangs, "three": lambda env: None})
    monkeypatch.setattr(sys, "argv", ["peers_setup", "--seconds", "0"])
    assert peers_setup.main() == 1
    printed = capsys.readouterr().out
    assert "no compiler" in printed
    assert "took too long" in printed
    assert [peers_setup.peer_python(name) is not None for name in ("one", "two", "three")] == [False, False, True]
    monkeypatch.setattr(sys, "argv", ["peers_setup", "--only", "three"])
    assert peers_setup.main() == 0
    assert "is there" in capsys.readouterr().out
    monkeypatch.setattr(peers_setup, "PINS", {"three": ("three==2",)})
    assert peers_setup.peer_python("three") is None  # another version is another peer
