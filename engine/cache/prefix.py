"""The prefix cache: which pages already hold the K/V of a prefix.

A radix tree whose digit is one full page of tokens, so an edge never has to be split: one node, one page. Every
namespace has its own root; namespaces never share a page, but for what lies before a fork.

Where every layer of the model has a sliding window, a continuation reads the pages in the window alone. So those behind
it may go while the ones after them stay; their nodes are then hollow, and only lead on.
"""

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import count

from engine.cache.pages import PagePool
from engine.cache.window import reach_of

Digit = tuple[int | bytes, ...]


def cache_namespace(salt: str, adapter_digest: str | None, *, is_long: bool = False) -> bytes:
    """The identity of rule 1. The digest covers the adapter's config, thus its scaling; names never enter.

    is_long: of sequences whose positions are those of a long context (LongRoPE), which gives other K/V.
    """
    parts = [salt.encode(), b"base" if adapter_digest is None else b"adapter:" + adapter_digest.encode()]
    parts += [b"long"] if is_long else []
    return blake2b(b"".join(len(part).to_bytes(8, "big") + part for part in parts), digest_size=16).digest()


@dataclass(frozen=True, slots=True)
class Fork:
    """From token `at` on, K/V are those of another namespace, over a prefix of this one: an activated adapter's."""

    at: int
    namespace: bytes


@dataclass(slots=True, eq=False)
class Node:
    """One page of one prefix. page: None of a root and of a hollow node."""

    namespace: bytes
    parent: "Node | None"
    digit: Digit
    page: int | None = None
    children: dict[Digit, "Node"] = field(default_factory=dict)
    last_used: int = 0

    @property
    def is_root(self) -> bool:
        return self.parent is None

    @property
    def is_forked(self) -> bool:
        return bool(self.digit) and isinstance(self.digit[0], bytes)


@dataclass(frozen=True, slots=True)
class Match:
    """The longest cached prefix. pages: ids of the pages of it that what follows reads, in order. behind: how many of
    its pages lie before those, behind the window."""

    behind: int
    pages: list[int]


class PrefixCache:
    """The tree holds one page reference per node that has a page. A page that anybody else references stays; of the
    others leaves are evicted, least recently used first, and under a window also what lies above them.

    window: keys that a token sees in every layer, itself included; None: all.
    """

    def __init__(self, pool: PagePool, page_size: int, window: int | None = None) -> None:
        self._pool = pool
        self._page_size = page_size
        self.window, self._reach = window, reach_of(window, page_size)
        self._roots: dict[bytes, Node] = {}
        self._node_of: dict[int, Node] = {}
        self._clock = count(1)
        # Candidates for eviction as (last_used, tie, node); entries may be out of date and are checked when popped.
        self._heap: list[tuple[int, int, Node]] = []
        self._ties = count()

    def __len__(self) -> int:
        """Pages in the tree."""
        return len(self._node_of)

    def behind(self, pages: int) -> int:
        """How many of a sequence's first `pages` pages no token after them sees."""
        return 0 if self._reach is None else max(0, pages - self._reach)

    def match(self, namespace: bytes, tokens: list[int], fork: Fork | None = None) -> Match:
        """The longest prefix of `tokens`, in whole pages, of which every page is cached that what follows reads.
        Touches it; the caller shares its pages before anything is evicted."""
        node = self._roots.get(namespace)
        if node is None:
            return Match(0, [])
        path, held, length = list[Node](), 0, 0
        for digit in self._digits(tokens, fork):
            node = node.children.get(digit)
            if node is None:
                break
            path.append(node)
            held = 0 if node.page is None else held + 1
            if held >= len(path) - self.behind(len(path)):
                length = len(path)
        now, behind = next(self._clock), self.behind(length)
        for node in path[behind:length]:
            node.last_used = now
        return Match(behind, [node.page for node in path[behind:length] if node.page is not None])

    def insert(
        self, namespace: bytes, tokens: list[int], pages: list[int], fork: Fork | None = None, behind: int = 0
    ) -> None:
        """Remember the full pages of `tokens`; `pages[i]` holds the i-th, but for the first `behind`, which are gone.

        The tree takes a reference of its own on each page that is new to it. Where it has a page for the same tokens
        already, it keeps that one.
        """
        node, now = self._roots.setdefault(namespace, Node(namespace, None, ())), next(self._clock)
        for number, (digit, page) in enumerate(zip(self._digits(tokens, fork), pages, strict=False)):
            if digit not in node.children:
                node.children[digit] = Node(namespace, node, digit)
            node = node.children[digit]
            if number >= behind:
                self._fill(node, page)
                node.last_used = now
        self._prune(node)

    def release(self, pages: Iterable[int]) -> None:
        """One reference less on each page. Those that only the tree still has may be evicted."""
        for page in pages:
            self._pool.free([page])
            if page in self._node_of:
                self._offer(self._node_of[page])

    def evict(self, wanted: int) -> int:
        """Drop pages that nobody uses until the pool has `wanted` available or none is left. Returns pages dropped."""
        dropped = 0
        while self._pool.available < wanted and self._heap:
            last_used, _, node = heapq.heappop(self._heap)
            if last_used < node.last_used:
                self._offer(node)
            elif self._is_evictable(node):
                self._drop(node)
                dropped += 1
        return dropped

    def check_integrity(self) -> None:
        """Every node leads to a page somebody references, and `evict` can find each one that may go."""
        nodes = list(self._nodes())
        assert {node.page: node for node in nodes if node.page is not None} == self._node_of
        offered = {id(node) for last_used, _, node in self._heap if last_used <= node.last_used}
        for node in nodes:
            assert node.parent is not None
            assert node.parent.children[node.digit] is node
            assert sum(isinstance(part, int) for part in node.digit) == self._page_size
            assert not node.parent.is_forked or node.is_forked, "a fork joins its stem again"
            assert node.page is None or self._pool.references(node.page) > 0, f"page {node.page} of the tree is free"
            assert node.page is not None or (node.children and self._reach is not None), "a hollow node leads nowhere"
            assert self._reach is not None or node.parent.is_root or node.parent.last_used >= node.last_used
            assert not self._is_evictable(node) or id(node) in offered
        assert all(root.children for root in self._roots.values()), "an empty namespace was kept"

    def _digits(self, tokens: list[int], fork: Fork | None) -> Iterator[Digit]:
        """Pages as the tree knows them: one that reaches beyond a fork says in front whose it is, from where on."""
        size = self._page_size
        for end in range(size, len(tokens) + 1, size):
            page = tuple(tokens[end - size : end])
            if fork is None or end <= fork.at:
                yield page
            else:
                begins = max(fork.at - (end - size), 0)
                yield (fork.namespace + begins.to_bytes(4, "big"), *page)

    def _fill(self, node: Node, page: int) -> None:
        if node.page is None:
            node.page = page
            self._node_of[page] = node
            self._pool.share([page])

    def _drop(self, node: Node) -> None:
        assert node.page is not None
        del self._node_of[node.page]
        self._pool.free([node.page])
        node.page = None
        self._prune(node)

    def _prune(self, node: Node) -> None:
        """Forget the end of a path that leads to no page any more."""
        while node.parent is not None and node.page is None and not node.children:
            parent = node.parent
            del parent.children[node.digit]
            node.parent = None
            node = parent
        if node.is_root and not node.children:
            del self._roots[node.namespace]
        self._offer(node)

    def _is_evictable(self, node: Node) -> bool:
        is_end = self._reach is not None or not node.children
        return node.page is not None and is_end and self._pool.references(node.page) == 1

    def _offer(self, node: Node) -> None:
        if not self._is_evictable(node):
            return
        if len(self._heap) > 2 * len(self) + 64:  # nothing evicts while the pool is roomy: do not grow for ever
            self._heap = [(n.last_used, next(self._ties), n) for n in self._node_of.values() if self._is_evictable(n)]
            heapq.heapify(self._heap)
        heapq.heappush(self._heap, (node.last_used, next(self._ties), node))

    def _nodes(self) -> Iterator[Node]:
        stack = [child for root in self._roots.values() for child in root.children.values()]
        while stack:
            node = stack.pop()
            stack.extend(node.children.values())
            yield node
