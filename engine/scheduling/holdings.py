"""The pages that sequences hold: taken from the pool, shared with the prefix cache, given back."""

from engine.cache.pages import PagePool
from engine.cache.prefix import PrefixCache
from engine.cache.window import most_held
from engine.scheduling.sequence import Sequence


class Holdings:
    """step_tokens: the most that a sequence computes in one step."""

    def __init__(self, pool: PagePool, cache: PrefixCache, page_size: int, step_tokens: int) -> None:
        self._pool, self._cache, self._page_size = pool, cache, page_size
        self._most_held = most_held(cache.window, page_size, step_tokens)

    def has(self, count: int) -> bool:
        """Whether so many pages are free, or only the cache holds them."""
        if self._pool.available < count:
            self._cache.evict(count)
        return self._pool.available >= count

    def lack(self, sequence: Sequence, tokens: int) -> int:
        """How many more pages it needs for so many tokens."""
        return max(self._pages_of(tokens) - len(sequence.pages), 0)

    def grow(self, sequence: Sequence, tokens: int) -> None:
        """The pages that it lacks for so many tokens; `has` has said that they are there."""
        sequence.pages += self._pool.allocate(self.lack(sequence, tokens))

    def place(self, sequence: Sequence, spare: int) -> bool:
        """Pages for all tokens it has, or for as many as it ever holds, the cached prefix first. The last token, which
        the next one is sampled from, is always computed, and so is every other whose row is asked for. spare: pages
        that stay for others. False: too few."""
        match = self._cache.match(sequence.root, sequence.tokens[: sequence.first_row], sequence.fork)
        self._pool.share(match.pages)
        sequence.pages, sequence.behind = [0] * match.behind + match.pages, match.behind
        sequence.cached_len = sequence.computed_len = len(sequence.pages) * self._page_size
        needed = self._pages_of(len(sequence.tokens)) - len(sequence.pages)
        if self._most_held is not None:
            needed = min(needed, self._most_held - len(match.pages))
        if not self.has(needed + spare):
            self.drop(sequence)
            return False
        sequence.pages += self._pool.allocate(needed)
        return True

    def share(self, parent: Sequence, child: Sequence) -> None:
        """`child` begins with the whole pages that `parent` has computed."""
        child.computed_len = parent.computed_len - parent.computed_len % self._page_size
        child.cached_len = child.computed_len
        child.pages, child.behind = parent.pages[: child.computed_len // self._page_size], parent.behind
        self._pool.share(child.held_pages)

    def remember(self, sequence: Sequence) -> None:
        """Offer the pages computed so far to the prefix cache; the sequence keeps them."""
        computed = sequence.tokens[: sequence.computed_len]
        self._cache.insert(sequence.root, computed, sequence.pages, sequence.fork, sequence.behind)

    def give_back_behind(self, sequence: Sequence) -> None:
        """The pages behind the window of all that it, or a fork of it, has still to compute."""
        behind = self._cache.behind(sequence.computed_len // self._page_size)
        gone = sequence.pages[sequence.behind : behind]
        self._cache.release(gone)
        sequence.pages[sequence.behind : behind] = [0] * len(gone)
        sequence.behind = max(behind, sequence.behind)

    def narrow(self, sequence: Sequence) -> None:
        """Give back the pages that only guessed tokens needed."""
        kept = self._pages_of(len(sequence.tokens))
        self._cache.release(sequence.pages[kept:])
        del sequence.pages[kept:]

    def drop(self, sequence: Sequence) -> None:
        """All of them."""
        self._cache.release(sequence.held_pages)
        sequence.pages, sequence.behind = [], 0
        sequence.cached_len = sequence.computed_len = 0

    def _pages_of(self, tokens: int) -> int:
        return -(-tokens // self._page_size)
