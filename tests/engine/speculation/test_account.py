"""The account: whatever a draft promised, drafting never loses more than its share of the time."""

from hypothesis import given
from hypothesis import strategies as st

from engine.speculation.account import ALLOWED, MOST_STEPS, Account

PLAIN = 1.0
# Of a step with drafts: seconds saved against plain ones, or lost.
saved = st.floats(-3 * PLAIN, 3 * PLAIN)


@given(st.lists(saved, min_size=1, max_size=300))
def test_what_is_lost_after_any_savings_is_bounded(steps: list[float]) -> None:
    account, lost, seconds = Account(), 0.0, 0.0
    for step in steps:
        gained, took = (step, PLAIN - step) if account.allows_drafts else (0.0, PLAIN)
        took = max(took, 0.01)
        account.saw(gained, took, PLAIN)
        lost, seconds = lost - gained, seconds + took
        # What was saved before the cap is not spendable, so the bound is on any stretch that ends here.
        lost = max(lost, 0.0)
        if not lost:
            seconds = 0.0
        assert lost <= ALLOWED * seconds + MOST_STEPS * PLAIN + 3 * PLAIN


def test_drafts_that_always_lose_are_made_at_the_rate_that_the_share_pays_for() -> None:
    account, drafted = Account(), 0
    for _ in range(10_000):
        drafts = account.allows_drafts
        drafted += drafts
        account.saw(-0.25 if drafts else 0.0, 1.25 if drafts else 1.0, PLAIN)
    assert 0.8 * ALLOWED < drafted * 0.25 / 10_000 < 1.2 * ALLOWED


def test_looking_for_drafts_is_paid_for_too() -> None:
    """Steps that only looked, and found nothing, for a tenth of their time."""
    account, looked = Account(), 0
    for _ in range(10_000):
        looks = account.allows_drafts
        looked += looks
        account.saw(-0.1 if looks else 0.0, 1.1 if looks else 1.0, PLAIN)
    assert looked * 0.1 / 10_000 < 1.2 * ALLOWED


def test_great_savings_license_no_great_losses() -> None:
    account = Account()
    for _ in range(1_000):
        account.saw(2.0, 0.5, PLAIN)
    losses = 0
    while account.allows_drafts:
        account.saw(-0.5, 1.5, PLAIN)
        losses += 1
    assert losses * 0.5 <= MOST_STEPS + 0.5 + losses * ALLOWED * 1.5
