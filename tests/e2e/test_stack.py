"""The whole stack, as a newcomer meets it: two tenants, their adapters, one base model, every token billed."""

import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import openai
import pytest
from openai import OpenAI

from controlplane.embedded.demo import books
from controlplane.embedded.demo.prompts import BEHAVIOURS
from controlplane.embedded.demo.report import usage_groups

if TYPE_CHECKING:
    from tests.e2e.conftest import World

pytestmark = pytest.mark.stack
ROOT = Path(__file__).resolve().parents[2]
QUESTION: list[Any] = [{"role": "user", "content": "What is the capital of Italy?"}]


def client(world: "World", slug: str) -> OpenAI:
    return OpenAI(base_url=f"{world.stack.door_url}/v1", api_key=world.keys[slug], max_retries=0, timeout=120)


def is_running(pid: int) -> bool:
    try:
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False


def children_of(home: Path) -> list[str]:
    """Command lines of all processes that work on a home, by their environment or their arguments."""
    found = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit() or int(folder.name) == os.getpid():
            continue
        try:
            arguments = (folder / "cmdline").read_bytes()
            if str(home).encode() in arguments + (folder / "environ").read_bytes() and is_running(int(folder.name)):
                found.append(arguments.replace(b"\0", b" ").decode(errors="replace"))
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue
    return found


def test_each_tenant_sees_its_own_models(world: "World") -> None:
    listed = {slug: {model.id for model in client(world, slug).models.list()} for slug in world.keys}
    assert listed["acme"] >= {world.base_model, "pirate"}
    assert "sql" not in listed["acme"]
    assert "pirate" not in listed["globex"]
    with pytest.raises(openai.NotFoundError):
        client(world, "globex").chat.completions.create(model="pirate", messages=QUESTION, max_tokens=4)


def test_streamed_and_whole_answers_are_the_same_and_in_character(world: "World") -> None:
    door = client(world, "acme")
    whole = door.chat.completions.create(model="pirate", messages=QUESTION, max_tokens=20, temperature=0)
    pieces = list(
        door.chat.completions.create(
            model="pirate", messages=QUESTION, max_tokens=20, temperature=0, stream=True,
            stream_options={"include_usage": True},
        )
    )  # fmt: skip
    text = "".join(choice.delta.content or "" for piece in pieces for choice in piece.choices)
    assert text == whole.choices[0].message.content
    assert text.startswith("Arrr!")
    assert whole.model == "pirate@1"
    assert pieces[-1].usage is not None
    assert whole.usage is not None
    assert pieces[-1].usage.completion_tokens == whole.usage.completion_tokens


def test_what_was_used_is_what_is_billed(world: "World") -> None:
    answer = client(world, "globex").chat.completions.create(
        model="sql", messages=[{"role": "user", "content": "How many trains are there?"}], max_tokens=20, temperature=0
    )
    assert BEHAVIOURS["sql"].shows(answer.choices[0].message.content or "")
    books.wait_until_settled(world.stack)
    member = world.members["globex"]
    groups = {group.row["label"]: group for group in usage_groups(member, member.session(world.stack))}
    assert groups["sql"].count("requests") >= 1
    assert groups["sql"].decimal("amount") > 0
    assert books.check_books(world.stack).rstrip().endswith("books: balanced")
    assert books.check_journal(world.stack) >= 1


def test_other_terminals_find_the_stack_and_strangers_do_not(world: "World") -> None:
    file = world.stack.home / "run" / "stack.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    pids = world.stack.facts()["pids"]
    assert set(pids) == {"postgres", "valkey", "engine", "worker", "imports", "batches", "beat", "console", "door"}
    assert all(is_running(pid) for pid in pids.values())


def test_secrets_stay_out_of_logs_and_argument_lists(world: "World") -> None:
    facts = world.stack.facts()
    secrets = [facts["VENEER_SECRET_KEY"], facts["VENEER_KEY_PEPPERS"].split(":")[1], *world.keys.values()]
    secrets += [world.stack.secret(f"{name}_password") for name in ("postgres", "valkey", "operator")]
    logs = "".join(path.read_text(errors="replace") for path in (world.stack.home / "logs").iterdir())
    arguments = "".join(Path(f"/proc/{pid}/cmdline").read_text() for pid in facts["pids"].values())
    assert [secret for secret in secrets if secret in logs or secret in arguments] == []


def test_a_second_up_names_the_first(world: "World") -> None:
    env = os.environ | {"VENEER_HOME": str(world.stack.home), "VENEER_MODEL": str(world.stack.model)}
    done = subprocess.run(
        [sys.executable, "manage.py", "up"], cwd=ROOT, env=env, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 1
    assert f"a stack is already running on {world.stack.home} (process " in done.stderr


def test_ctrl_c_leaves_nothing_and_the_next_start_finds_everything(world: "World") -> None:
    before = client(world, "acme").chat.completions.create(
        model="pirate", messages=QUESTION, max_tokens=8, temperature=0
    )
    world.stack.stop()
    assert children_of(world.stack.home) == []
    assert not (world.stack.home / "run" / "stack.json").exists()
    world.stack.start()
    after = client(world, "acme").chat.completions.create(
        model="pirate", messages=QUESTION, max_tokens=8, temperature=0
    )
    assert after.choices[0].message.content == before.choices[0].message.content
    assert books.check_journal(world.stack) >= 2
