"""The whole story, step by step. It ends well only if every step held."""

import asyncio
from dataclasses import dataclass, field
from pathlib import Path

from controlplane.embedded.client import Client
from controlplane.embedded.demo import books, browser, limits, money, people, releases, report, uploads
from controlplane.embedded.demo.kills import killing
from controlplane.embedded.demo.load import Answer, Ask, Door, check_behaviours, check_same, mixed_load
from controlplane.embedded.demo.people import Member
from controlplane.embedded.demo.stack import DemoStack
from controlplane.embedded.demo.steps import step
from controlplane.embedded.terminal import show


@dataclass
class Story:
    """kill: which child dies again and again during the load, or None."""

    stack: DemoStack
    kill: str | None = None
    members: list[Member] = field(default_factory=list)
    keys: dict[str, str] = field(default_factory=dict)

    @property
    def base_model(self) -> str:
        return self.stack.model.name

    def tell(self) -> str:
        """The last line. Raises DemoFailed, ApiFailure, or an error of `openai`."""
        browser.find_browser()
        with step("stack is up"):
            self.stack.start()
        self._set_up()
        self._first_round()
        self._limits()
        self._releases()
        with step("stack is up again in exact mode (fp32 weights and KV)"):
            self.stack.stop()
            self.stack.start(exact=True)
        self._second_round()
        return self._close_books()

    def _set_up(self) -> None:
        with step("two tenants and a price"):
            operator = people.operator_session(self.stack)
            self.members = people.create_tenants(operator)
            people.set_price(operator, self.base_model)
        for member in self.members:
            self._fill(member, member.session(self.stack))

    def _fill(self, member: Member, session: Client) -> None:
        for name in member.plan.adapters:
            if name == uploads.WITH_BROWSER:
                with step(f"{member.slug}: adapter {name} uploaded over the console in a browser, ready"):
                    browser.upload_in_console(
                        self.stack.console_url, email=member.plan.email, password=member.password,
                        folder=uploads.EXAMPLES / name,
                    )  # fmt: skip
                    uploads.wait_until_ready(session, name)
            else:
                with step(f"{member.slug}: adapter {name} uploaded in parts, checked, ready"):
                    uploads.upload_by_api(session, name=name, base_model=self.base_model)
        with step(f"{member.slug}: malformed adapters refused with reasons"):
            uploads.expect_refusal(session, base_model=self.base_model)
            uploads.expect_pickle_refused(session, base_model=self.base_model)
        with step(f"{member.slug}: key issued"):
            self.keys[member.slug] = people.issue_key(session, "programs")["key"]

    def _asks(self) -> list[Ask]:
        adapters = {member.slug: member.plan.adapters for member in self.members}
        return mixed_load(base_model=self.base_model, adapters=adapters)

    def _first_round(self) -> None:
        asks = self._asks()
        with step(f"{len(asks)} requests at once, streaming and not, over base and four adapters"):
            answers = asyncio.run(self._load(asks))
        with step("each adapter's behaviour shows in its text"):
            check_behaviours(answers)
        if self.kill:
            with step(f"every request was answered although {self.kill} was killed again and again"):
                show(f"    tries a request: {sorted(answer.tries for answer in answers)}")

    async def _load(self, asks: list[Ask]) -> list[Answer]:
        async with killing(self.stack, self.kill):
            return await Door(self.stack.door_url, self.keys, retry=self.kill is not None).ask_all(asks)

    def _limits(self) -> None:
        operator = people.operator_session(self.stack)
        acme, globex = self.members
        client = limits.client_of(self.stack.door_url, self.keys[acme.slug])
        with step("a foreign adapter looks missing (404)"):
            limits.expect_foreign_model_missing(client, globex.plan.adapters[0])
        with step("a spent budget is refused (402)"):
            limits.expect_out_of_budget(operator, acme.id, client, self.base_model)
        with step("a rate limit is refused (429), and its Retry-After is true"):
            limits.expect_rate_limit(operator, acme.id, client, self.base_model)
        with step("a revoked key is refused within a second (401)"):
            session = globex.session(self.stack)
            key = people.issue_key(session, "to be revoked")
            revoked = limits.client_of(self.stack.door_url, key["key"])
            limits.expect_revoked_within_a_second(session, key["id"], revoked, self.base_model)

    def _releases(self) -> None:
        acme, globex = self.members
        name, session = acme.plan.adapters[0], acme.session(self.stack)
        client = limits.client_of(self.stack.door_url, self.keys[acme.slug])
        with step(f"a canary: half of the users of {name} get a second version, and stay with it"):
            candidate = acme.plan.adapters[1]
            sides = releases.expect_canary(session, client, name=name, candidate=candidate, base_model=self.base_model)
            show(f"    {sides}")
        with step("one call rolls it back"):
            releases.expect_rollback(session, client, name=name)
        with step(f"{globex.slug} calls {acme.slug}/{name} while it is shared, and not before or after"):
            stranger = limits.client_of(self.stack.door_url, self.keys[globex.slug])
            releases.expect_grant(session, stranger, name=name, owner_slug=acme.slug, to=globex.slug)
        with step("a key is rotated: its old text works for a grace, then no more (401)"):
            key = people.issue_key(session, "to be rotated")
            old = limits.client_of(self.stack.door_url, key["key"])
            releases.expect_rotation(session, key, old, self.base_model)

    def _second_round(self) -> None:
        asks = self._asks()
        door = Door(self.stack.door_url, self.keys, retry=False)
        with step(f"the same {len(asks)} requests at once in exact mode"):
            mixed = asyncio.run(door.ask_all(asks))
        with step("every greedy answer of the mixed load equals the same request sent alone"):
            check_same(mixed, asyncio.run(door.ask_each(asks)))
            check_behaviours(mixed)

    def _close_books(self) -> str:
        with step("nothing is held any more"):
            books.wait_until_settled(self.stack)
        with step("the books are closed: a statement for each tenant"):
            operator = people.operator_session(self.stack)
            for member in self.members:
                show(f"    {member.slug}: {books.close_period(operator, member.id)}")
        with step("an invoice for each, whose lines add up, as PDF too"):
            for member in self.members:
                show(f"    {member.slug}: {money.expect_invoice(member.session(self.stack))}")
        with step("check_books: every invariant holds"):
            show(books.check_books(self.stack).rstrip())
        with step("the engine's journal equals the usage events one to one"):
            events = books.check_journal(self.stack)
            show(f"    {events} lines on both sides")
        with step("what was earned, and what the device's time cost"):
            money.show_margin(operator)
        groups = []
        for member in self.members:
            groups += report.usage_groups(member, member.session(self.stack))
        report.show_table(groups)
        adapters = sum(len(member.plan.adapters) for member in self.members)
        return report.last_line(self.members, adapters, groups)


def tell(home: Path, model: Path, *, kill: str | None) -> str:
    """Start, tell, and stop whatever happened."""
    stack = DemoStack(home, model)
    try:
        return Story(stack, kill).tell()
    finally:
        stack.stop()
