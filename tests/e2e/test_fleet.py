"""An operator drains and restarts the real engine under its real supervisor."""

import time
from typing import TYPE_CHECKING, Any

import openai
import pytest
from openai import OpenAI

from controlplane.embedded.demo import people

if TYPE_CHECKING:
    from tests.e2e.conftest import World

pytestmark = pytest.mark.stack
PATIENCE = 120.0
QUESTION: list[Any] = [{"role": "user", "content": "Count from one to thirty."}]


def test_an_engine_is_drained_resumed_and_restarted(world: "World") -> None:
    operator = people.operator_session(world.stack)

    def replica() -> dict[str, Any]:
        [found] = operator.get("/api/v1/operator/fleet")["replicas"]
        return dict(found)

    def ask(**options: Any) -> Any:
        door = OpenAI(
            base_url=f"{world.stack.door_url}/v1", api_key=world.keys["acme"], max_retries=0, timeout=PATIENCE
        )
        return door.chat.completions.create(
            model=world.base_model, messages=QUESTION, max_tokens=60, temperature=0, **options
        )

    ask()
    before = replica()
    assert (before["state"], before["can_restart"], before["kv"]) == ("serving", True, "fp8")
    assert before["totals"]["generated_tokens"] > 0
    running = ask(stream=True, extra_body={"ignore_eos": True})
    next(running)
    assert operator.post("/api/v1/operator/fleet/engine/drain")["state"] == "draining"
    with pytest.raises(openai.InternalServerError) as refused:
        ask()
    assert (refused.value.status_code, refused.value.code) == (503, "engine_draining")
    assert int(refused.value.response.headers["Retry-After"]) > 0
    pieces = [chunk.choices[0] for chunk in running if chunk.choices]
    assert pieces[-1].finish_reason == "length"  # what was accepted ran to its end
    assert operator.post("/api/v1/operator/fleet/engine/resume")["state"] == "serving"
    ask()
    operator.post("/api/v1/operator/fleet/engine/drain")
    operator.post("/api/v1/operator/fleet/engine/restart")
    deadline = time.monotonic() + PATIENCE
    while (after := replica())["state"] != "serving" or after["boot_id"] == before["boot_id"]:
        assert time.monotonic() < deadline, after
        time.sleep(0.2)
    assert after["totals"]["generated_tokens"] == 0
    while True:
        try:
            ask()
            break
        except openai.InternalServerError:  # the door has not seen it come back yet
            assert time.monotonic() < deadline
            time.sleep(0.2)
    assert replica()["totals"]["generated_tokens"] > 0
