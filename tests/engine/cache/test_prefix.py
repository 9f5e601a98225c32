from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from engine.cache.pages import PagePool
from engine.cache.prefix import Match, PrefixCache, cache_namespace

PAGE = 2
POOL = 16
Key = tuple[bytes, tuple[int, ...]]
namespaces = st.sampled_from([b"acme", b"globex"])
prompts = st.lists(st.integers(0, 1), max_size=10)  # two tokens only, so that prefixes do meet


def cut(tokens: list[int]) -> list[tuple[int, ...]]:
    return [tuple(tokens[i : i + PAGE]) for i in range(0, len(tokens) - PAGE + 1, PAGE)]


class PrefixCacheMachine(RuleBasedStateMachine):
    """The model is a dictionary: (namespace, whole prefix) -> page, and who uses which pages."""

    @initialize(window=st.sampled_from([None, None, 1, 2, 3, 4, 5, 7]))
    def open(self, window: int | None) -> None:
        self.window = window
        self.pool = PagePool(POOL)
        self.cache = PrefixCache(self.pool, PAGE, window)
        self.known: dict[Key, int] = {}
        self.users: list[list[Key]] = []

    def prefixes(self, namespace: bytes, tokens: list[int]) -> list[Key]:
        return [(namespace, tuple(tokens[: PAGE * (i + 1)])) for i in range(len(cut(tokens)))]

    def unseen(self, pages: int) -> int:
        """Pages of which a token after `pages` pages sees nothing, told token by token."""
        first = 0 if self.window is None else max(0, PAGE * pages + 1 - self.window)
        return min(sum(PAGE * (page + 1) <= first for page in range(pages)), pages)

    @rule(namespace=namespaces, tokens=prompts, data=st.data())
    def insert(self, namespace: bytes, tokens: list[int], data: st.DataObject) -> None:
        """As a sequence does that has given back some pages behind its window."""
        keys = self.prefixes(namespace, tokens)
        behind = data.draw(st.integers(0, self.unseen(len(keys))))
        if self.pool.available < len(keys):
            self.evict(POOL)
        if self.pool.available < len(keys):
            return
        pages = self.pool.allocate(len(keys) - behind)
        self.cache.insert(namespace, tokens, [0] * behind + pages, behind=behind)
        for key, page in zip(keys[behind:], pages, strict=True):
            self.known.setdefault(key, page)
        self.cache.release(pages)

    @rule(namespace=namespaces, tokens=prompts)
    def match(self, namespace: bytes, tokens: list[int]) -> None:
        keys, best = self.prefixes(namespace, tokens), 0
        for length in range(1, len(keys) + 1):
            is_there = any(key[0] == namespace and key[1][: PAGE * length] == keys[length - 1][1] for key in self.known)
            if is_there and all(key in self.known for key in keys[self.unseen(length) : length]):
                best = length
        match = self.cache.match(namespace, tokens)
        seen = keys[self.unseen(best) : best]
        assert match == Match(self.unseen(best), [self.known[key] for key in seen])
        self.pool.share(match.pages)
        self.users.append(seen)

    @precondition(lambda self: self.users)
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        used = self.users.pop(data.draw(st.integers(0, len(self.users) - 1)))
        self.cache.release([self.known[key] for key in used])

    @rule(wanted=st.integers(0, POOL))
    def evict(self, wanted: int) -> None:
        before = len(self.cache)
        dropped = self.cache.evict(wanted)
        assert dropped == before - len(self.cache)
        used = {key for keys in self.users for key in keys}
        for key in [key for key, page in self.known.items() if self.pool.references(page) == 0]:
            assert key not in used, "a page in use was evicted"
            del self.known[key]
        assert len(self.known) == len(self.cache)
        assert self.pool.available >= wanted or set(self.known) == used

    @invariant()
    def is_sound(self) -> None:
        self.pool.check_integrity()
        self.cache.check_integrity()
        assert len(self.cache) == len(self.known) == POOL - self.pool.available


TestPrefixCache = PrefixCacheMachine.TestCase
TestPrefixCache.settings = settings(max_examples=120, stateful_step_count=40, deadline=None)


def filled(pool: PagePool, cache: PrefixCache, tokens: list[int]) -> list[int]:
    pages = pool.allocate(len(tokens) // PAGE)
    cache.insert(b"n", tokens, pages)
    cache.release(pages)
    return pages


def test_least_recently_used_leaf_goes_first() -> None:
    pool = PagePool(4)
    cache = PrefixCache(pool, PAGE)
    old, new = filled(pool, cache, [1, 1, 2, 2]), filled(pool, cache, [3, 3, 4, 4])
    cache.match(b"n", [1, 1, 2, 2])
    cache.evict(1)
    assert cache.match(b"n", [3, 3, 4, 4]).pages == new[:1]
    assert cache.match(b"n", [1, 1, 2, 2]).pages == old


def test_candidates_do_not_pile_up_while_nothing_is_evicted() -> None:
    pool = PagePool(4)
    cache = PrefixCache(pool, PAGE)
    filled(pool, cache, [1, 1, 2, 2])
    for _ in range(10_000):
        cache.match(b"n", [1, 1, 2, 2])
    assert len(cache._heap) <= 2 * len(cache) + 65
    cache.check_integrity()


def test_namespace_is_tenant_and_content_and_cannot_be_forged() -> None:
    parts = [("", None), ("salt", None), ("salt", "d1"), ("salt", "d2"), ("other", "d1"), ("", "base"), ("base", None)]
    assert len({cache_namespace(salt, digest) for salt, digest in parts}) == len(parts)
    assert cache_namespace("ab", "c") != cache_namespace("a", "bc")
    assert cache_namespace("a", "b", is_long=True) not in (cache_namespace("a", "b"), cache_namespace("a", "blong"))


def test_under_a_window_what_lies_behind_goes_and_what_follows_is_found() -> None:
    pool = PagePool(6)
    cache = PrefixCache(pool, PAGE, window=3)
    pages = filled(pool, cache, [1, 1, 2, 2, 3, 3, 4, 4])
    cache.evict(3)
    assert cache.match(b"n", [1, 1, 2, 2, 3, 3, 4, 4]) == Match(3, [pages[3]])
    assert cache.match(b"n", [1, 1, 2, 2]) == Match(1, [pages[1]])
    cache.evict(6)
    assert not cache._roots, "nothing is left of a path whose pages are gone"
