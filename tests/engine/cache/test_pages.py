from collections import Counter

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from engine.cache.pages import PagePool

SIZE = 12


class PagePoolMachine(RuleBasedStateMachine):
    """The model is a bag: how often each page is held."""

    def __init__(self) -> None:
        super().__init__()
        self.pool = PagePool(SIZE)
        self.held: Counter[int] = Counter()

    @rule(share=st.floats(0, 1))
    def allocate(self, share: float) -> None:
        count = int(share * self.pool.available)
        pages = self.pool.allocate(count)
        assert len(set(pages)) == count
        assert not set(pages) & self.held.keys()
        self.held.update(pages)

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def share(self, data: st.DataObject) -> None:
        pages = data.draw(st.lists(st.sampled_from(sorted(self.held)), max_size=5))
        self.pool.share(pages)
        self.held.update(pages)

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def free(self, data: st.DataObject) -> None:
        page = data.draw(st.sampled_from(sorted(self.held)))
        self.pool.free([page])
        self.held[page] -= 1
        self.held += Counter()  # drops pages held no more

    @invariant()
    def agrees_with_the_bag(self) -> None:
        self.pool.check_integrity()
        assert self.pool.available == SIZE - len(self.held)
        assert [self.pool.references(page) for page in range(SIZE)] == [self.held[page] for page in range(SIZE)]


TestPagePool = PagePoolMachine.TestCase
TestPagePool.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)


def test_misuse_is_a_bug_and_says_so() -> None:
    pool = PagePool(2)
    pages = pool.allocate(2)
    with pytest.raises(AssertionError, match="1 pages asked, 0 free"):
        pool.allocate(1)
    pool.free(pages)
    with pytest.raises(AssertionError, match="freed twice"):
        pool.free(pages[:1])
    with pytest.raises(AssertionError, match="is free"):
        pool.share(pages[:1])
