"""Batches: reserved whole, worked off line by line by a worker that may die, ended by their last line or by hand."""

from contextlib import suppress
from dataclasses import dataclass, field

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from controlplane.billing.pricing import PinnedPrice, most_it_may_cost
from controlplane.billing.services import price_for
from controlplane.errors import InsufficientFunds, RateLimited
from controlplane.inference.settlement import Account
from controlplane.quotas.batch_holds import Share, draw, reserve_batch
from controlplane.quotas.services import release_hold
from tenants.ids import new_id
from tenants.models import ApiKey
from tenants.sql import run_sync
from tests.books.faults import any_of, attempt, dies
from tests.books.request import Request
from tests.controlplane.money import BASE, Customer

few_tokens = st.integers(0, 20)
few_lines = st.lists(st.tuples(few_tokens, few_tokens), min_size=1, max_size=3)


@dataclass
class Line:
    prompt: int
    most: int
    attempts: int = 0

    @property
    def tokens(self) -> int:
        return self.prompt + self.most


@dataclass
class Batch:
    """lines: not begun yet, or to be begun anew. price: as it was when the batch was created."""

    id: str
    key: ApiKey
    price: PinnedPrice
    lines: list[Line] = field(default_factory=list)


class BatchWork(RuleBasedStateMachine):
    acme: Customer
    keys: list[ApiKey]
    running: list[Request]

    def prepare_batches(self) -> None:
        self.batches: list[Batch] = []

    def _price(self) -> PinnedPrice:
        return run_sync(price_for(tenant_id=self.acme.tenant.id, base_model=BASE, adapter_id=None, is_batch=True))

    @rule(key=st.integers(0, 1), sizes=few_lines, dies_at=dies)
    def begin_batch(self, key: int, sizes: list[tuple[int, int]], dies_at: int | None) -> None:
        batch = Batch(new_id("batch"), self.keys[key], self._price(), [Line(*size) for size in sizes])
        most = [most_it_may_cost(batch.price, prompt=line.prompt, max_completion=line.most) for line in batch.lines]
        plan = reserve_batch(
            batch_id=batch.id, tenant_id=self.acme.tenant.id, key_id=batch.key.id, amount=sum(most, start=most[0] * 0),
            tokens=sum(line.tokens for line in batch.lines), ttl_seconds=3600,
        )  # fmt: skip
        with suppress(InsufficientFunds, RateLimited):
            if attempt(lambda: run_sync(plan), dies_at):
                self.batches.append(batch)

    @precondition(lambda self: any(batch.lines for batch in self.batches))
    @rule(which=any_of, dies_at=dies)
    def begin_line(self, which: int, dies_at: int | None) -> None:
        """The first attempt brings its share along, at the price of then; one that was lost, or refused, does not."""
        open_ones = [batch for batch in self.batches if batch.lines]
        batch = open_ones[which % len(open_ones)]
        line, price = batch.lines.pop(0), self._price()
        share = Share(batch.id)
        if line.attempts == 0:
            share = Share(
                batch.id, most_it_may_cost(batch.price, prompt=line.prompt, max_completion=line.most), line.tokens
            )
        line.attempts += 1
        account = Account(self.acme.tenant.id, batch.key.id, None, None, BASE, BASE, price, is_batch=True)
        request_id = f"{batch.id}-{len(batch.lines)}-{line.attempts}"
        plan = draw(
            request_id=request_id, tenant_id=account.tenant_id, key_id=account.key_id, tokens=line.tokens,
            amount=most_it_may_cost(price, prompt=line.prompt, max_completion=line.most), ttl_seconds=3600,
            context=account.to_context(), share=share,
        )  # fmt: skip
        try:
            taken = attempt(lambda: run_sync(plan), dies_at)
        except (InsufficientFunds, RateLimited):
            return
        if taken:
            self.running.append(Request(request_id, account, line.prompt, line.most))
        else:
            batch.lines.insert(0, line)

    @precondition(lambda self: self.batches)
    @rule(which=any_of, dies_at=dies)
    def end_batch(self, which: int, dies_at: int | None) -> None:
        """Done, cancelled or given up: what its lines have not taken goes back. Those under way end as they would."""
        batch = self.batches.pop(which % len(self.batches))
        attempt(lambda: run_sync(release_hold(request_id=batch.id)), dies_at)
