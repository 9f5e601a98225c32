"""Forked prefixes against a plain set of paths: what lies before a fork is shared with the stem, and nothing behind."""

from hypothesis import given, settings
from hypothesis import strategies as st

from engine.cache.pages import PagePool
from engine.cache.prefix import Fork, PrefixCache

PAGE = 3
tokens_ = st.lists(st.sampled_from([1, 1, 1, 2]), min_size=2, max_size=7)
forks = st.none() | st.builds(Fork, st.integers(0, 8), st.sampled_from([b"x", b"y"]))


def paths(tokens: list[int], fork: Fork | None) -> list[tuple[object, ...]]:
    """Each whole page as everything that determines its K/V: whose adapter computed which tokens up to its end."""
    owners = [None if fork is None or at < fork.at else fork.namespace for at in range(len(tokens))]
    return [(tuple(tokens[:end]), tuple(owners[:end])) for end in range(PAGE, len(tokens) + 1, PAGE)]


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(tokens_, forks), max_size=8), tokens_, forks)
def test_pages_are_found_where_the_same_computation_put_them(
    inserted: list[tuple[list[int], Fork | None]], asked: list[int], fork: Fork | None
) -> None:
    pool = PagePool(64)
    cache = PrefixCache(pool, PAGE)
    known: dict[tuple[object, ...], int] = {}
    for tokens, theirs in inserted:
        pages = pool.allocate(len(tokens) // PAGE)
        cache.insert(b"n", tokens, pages, theirs)
        cache.release(pages)
        for path, page in zip(paths(tokens, theirs), pages, strict=True):
            known.setdefault(path, page)
        cache.check_integrity()
    found = cache.match(b"n", asked, fork).pages
    wanted = [known.get(path) for path in paths(asked, fork)]
    assert found == wanted[: wanted.index(None)] if None in wanted else found == wanted
    assert cache.evict(64) == len(known)
    pool.check_integrity()
