"""What a tenant does with an adapter and a key once they are there: canary, rollback, grant, rotation."""

import openai
from openai import OpenAI

from controlplane.embedded.client import JSON, Client
from controlplane.embedded.demo.limits import MESSAGES
from controlplane.embedded.demo.steps import DemoFailed, expect
from controlplane.embedded.demo.uploads import EXAMPLES
from controlplane.embedded.upload import upload_adapter

USERS = tuple(f"user-{number}" for number in range(6))
GRACE_SECONDS = 60


def adapter_of(session: Client, name: str) -> JSON:
    found = {adapter["name"]: adapter for adapter in session.get("/api/v1/adapters")["data"]}
    expect(name in found, f"adapter {name} should be listed; there are {sorted(found)}")
    adapter: JSON = found[name]
    return adapter


def expect_canary(session: Client, client: OpenAI, *, name: str, candidate: str, base_model: str) -> str:
    """Half of the users get a second version, each always the same one. candidate: the example that it is made of."""
    adapter = adapter_of(session, name)
    before = _answer(client, name, USERS[0])
    session.put(f"/api/v1/adapters/{adapter['id']}/alias", {"splits": [{"version": 1, "weight": 1}]})
    version = upload_adapter(session, name=name, base_model=base_model, folder=EXAMPLES / candidate)
    expect((version["number"], version["state"]) == (2, "ready"), f"version 2 should be ready: {version}")
    expect(_answer(client, name, USERS[0]) == before, "a version that nobody released should answer nobody")
    split = [{"version": 1, "weight": 50}, {"version": 2, "weight": 50}]
    session.put(f"/api/v1/adapters/{adapter['id']}/alias", {"splits": split})
    once, again = ({user: _answer(client, name, user) for user in USERS} for _ in range(2))
    expect(once == again, f"each user should stay with one version: {once} and then {again}")
    sides = [sum(text == before for text in once.values()), sum(text != before for text in once.values())]
    expect(all(sides), f"some users should get version 1 and some version 2, not {sides}")
    return f"{sides[0]} users on version 1, {sides[1]} on version 2"


def expect_rollback(session: Client, client: OpenAI, *, name: str) -> None:
    adapter = session.post(f"/api/v1/adapters/{adapter_of(session, name)['id']}/rollback")
    versions = [split["version"] for split in adapter["alias"]["splits"]]
    expect(versions == [1], f"after the rollback the name should answer with version 1 alone, not {versions}")
    texts = {_answer(client, name, user) for user in USERS}
    expect(len(texts) == 1, f"after the rollback everybody should get one answer, not {texts}")


def expect_grant(owner: Client, client: OpenAI, *, name: str, owner_slug: str, to: str) -> None:
    """client: of the tenant that it is shared with, which sees it from then on and not a second longer."""
    model, path = f"{owner_slug}/{name}", f"/api/v1/adapters/{adapter_of(owner, name)['id']}/grants"
    _expect_missing(client, model)
    grant = owner.post(path, {"tenant": to})
    _answer(client, model, USERS[0])
    expect(model in {found.id for found in client.models.list()}, f"{model} should be listed to whom it is shared with")
    owner.delete(f"{path}/{grant['id']}")
    _expect_missing(client, model)


def expect_rotation(session: Client, key: JSON, old: OpenAI, model: str) -> None:
    """key: of `old`. The new text works at once, the old one for a grace, and not beyond a revocation."""
    issued = session.post(f"/api/v1/keys/{key['id']}/rotate", {"grace_seconds": GRACE_SECONDS})
    new = old.with_options(api_key=issued["key"])
    for client in (old, new):
        _answer(client, model, USERS[0])
    session.post(f"/api/v1/keys/{key['id']}/rotate", {"grace_seconds": 0})
    try:
        _answer(old, model, USERS[0])
    except openai.AuthenticationError:
        return
    raise DemoFailed("a rotated key should be refused once its grace is over")


def _answer(client: OpenAI, model: str, user: str) -> str:
    told = client.chat.completions.create(model=model, messages=MESSAGES, max_tokens=12, temperature=0, user=user)
    return told.choices[0].message.content or ""


def _expect_missing(client: OpenAI, model: str) -> None:
    try:
        _answer(client, model, USERS[0])
    except openai.NotFoundError:
        return
    raise DemoFailed(f"{model} should be missing to a tenant that it is not shared with")
