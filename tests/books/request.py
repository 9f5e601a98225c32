"""A request of the simulator's, and what it must have cost, computed apart from the product."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from fractions import Fraction

from controlplane.inference.settlement import Account, Ended
from engine.protocol import Usage


@dataclass(frozen=True)
class Request:
    """One that the door was told it may run."""

    id: str
    account: Account
    prompt: int
    most: int
    usage: Usage | None = None
    reason: str = "stop"
    at: datetime = datetime(2026, 1, 1, tzinfo=UTC)

    def ended(self) -> Ended:
        assert self.usage
        return Ended(self.id, self.usage, self.reason, self.at - timedelta(seconds=1), self.at)

    def cost(self) -> Fraction:
        """Computed apart from the product."""
        assert self.usage
        price, usage = self.account.price, self.usage
        full, cached = usage.prompt_tokens - usage.cached_tokens, usage.cached_tokens
        parts = ((full, price.input), (cached, price.cached_input), (usage.completion_tokens, price.output))
        on_top = Fraction(price.markup.per_million) * self.tokens if price.markup else Fraction(0)
        return (sum((tokens * Fraction(rate) for tokens, rate in parts), Fraction(0)) + on_top) / 1_000_000

    def earned(self) -> Fraction:
        """By the owner of its adapter."""
        markup = self.account.price.markup
        return Fraction(markup.earned) * self.tokens / 1_000_000 if markup else Fraction(0)

    @property
    def tokens(self) -> int:
        assert self.usage
        return self.usage.prompt_tokens + self.usage.completion_tokens
