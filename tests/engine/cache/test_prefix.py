from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from engine.cache.pages import PagePool
from engine.cache.prefix import Node, PrefixCache, cache_namespace

PAGE = 2
POOL = 16
namespaces = st.sampled_from([b"acme", b"globex"])
prompts = st.lists(st.integers(0, 1), max_size=10)  # two tokens only, so that prefixes do meet


def cut(tokens: list[int]) -> list[tuple[int, ...]]:
    return [tuple(tokens[i : i + PAGE]) for i in range(0, len(tokens) - PAGE + 1, PAGE)]


class PrefixCacheMachine(RuleBasedStateMachine):
    """The model is a dictionary: (namespace, whole prefix) -> page, and who uses which prefix."""

    def __init__(self) -> None:
        super().__init__()
        self.pool = PagePool(POOL)
        self.cache = PrefixCache(self.pool, PAGE)
        self.known: dict[tuple[bytes, tuple[int, ...]], int] = {}
        self.users: list[tuple[bytes, list[int], Node, list[int]]] = []

    def prefixes(self, namespace: bytes, tokens: list[int]) -> list[tuple[bytes, tuple[int, ...]]]:
        return [(namespace, tuple(tokens[: PAGE * (i + 1)])) for i in range(len(cut(tokens)))]

    @rule(namespace=namespaces, tokens=prompts)
    def insert(self, namespace: bytes, tokens: list[int]) -> None:
        keys = self.prefixes(namespace, tokens)
        if self.pool.available < len(keys):
            self.evict(POOL)
        if self.pool.available < len(keys):
            return
        pages = self.pool.allocate(len(keys))
        node = self.cache.insert(namespace, tokens, pages)
        assert (node is None) == (not keys)
        for key, page in zip(keys, pages, strict=True):
            self.known.setdefault(key, page)
        self.pool.free(pages)
        if node is not None:
            assert node.page == self.known[keys[-1]]

    @rule(namespace=namespaces, tokens=prompts)
    def match(self, namespace: bytes, tokens: list[int]) -> None:
        expected = []
        for key in self.prefixes(namespace, tokens):
            if key not in self.known:
                break
            expected.append(self.known[key])
        match = self.cache.match(namespace, tokens)
        assert match.pages == expected
        assert (match.node is None) == (not expected)
        if match.node is not None:
            self.cache.lock(match.node)
            self.users.append((namespace, tokens[: PAGE * len(expected)], match.node, expected))

    @precondition(lambda self: self.users)
    @rule(data=st.data())
    def unlock(self, data: st.DataObject) -> None:
        *_, node, _ = self.users.pop(data.draw(st.integers(0, len(self.users) - 1)))
        self.cache.unlock(node)

    @rule(wanted=st.integers(0, POOL))
    def evict(self, wanted: int) -> None:
        before = len(self.cache)
        dropped = self.cache.evict(wanted)
        assert dropped == before - len(self.cache)
        locked = {key for ns, tokens, _, _ in self.users for key in self.prefixes(ns, tokens)}
        for key in [key for key, page in self.known.items() if self.pool.references(page) == 0]:
            assert key not in locked, "a locked prefix was evicted"
            del self.known[key]
        assert len(self.known) == len(self.cache)
        assert self.pool.available >= wanted or set(self.known) == locked

    @invariant()
    def is_sound(self) -> None:
        self.pool.check_integrity()
        self.cache.check_integrity()
        assert len(self.cache) == len(self.known) == POOL - self.pool.available


TestPrefixCache = PrefixCacheMachine.TestCase
TestPrefixCache.settings = settings(max_examples=80, stateful_step_count=40, deadline=None)


def filled(pool: PagePool, cache: PrefixCache, tokens: list[int]) -> list[int]:
    pages = pool.allocate(len(tokens) // PAGE)
    cache.insert(b"n", tokens, pages)
    pool.free(pages)
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
