"""The prefix cache: which pages already hold the K/V of a prefix.

A radix tree whose digit is one full page of tokens, so an edge never has to be split: one node, one page. Every
namespace has its own root; namespaces never share a page, but for what lies before a fork.
"""

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import count

from engine.cache.pages import PagePool

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
    """One page of one prefix. `locks` counts the running sequences whose deepest cached page this is."""

    namespace: bytes
    parent: "Node | None"
    digit: Digit
    page: int
    children: dict[Digit, "Node"] = field(default_factory=dict)
    locks: int = 0
    last_used: int = 0

    @property
    def is_root(self) -> bool:
        return self.parent is None

    @property
    def is_forked(self) -> bool:
        return bool(self.digit) and isinstance(self.digit[0], bytes)


@dataclass(frozen=True, slots=True)
class Match:
    """pages: page ids of the longest cached prefix, in order. node: what to lock while they are used."""

    node: Node | None
    pages: list[int]


class PrefixCache:
    """The tree holds one page reference per node. Only unlocked leaves are evicted, least recently used first;
    a locked node has no need to lock its ancestors, since they are no leaves."""

    def __init__(self, pool: PagePool, page_size: int) -> None:
        self._pool = pool
        self._page_size = page_size
        self._roots: dict[bytes, Node] = {}
        self._size = 0
        self._clock = count(1)
        # Candidates for eviction as (last_used, tie, node); entries may be out of date and are checked when popped.
        self._heap: list[tuple[int, int, Node]] = []
        self._ties = count()

    def __len__(self) -> int:
        """Pages in the tree."""
        return self._size

    def match(self, namespace: bytes, tokens: list[int], fork: Fork | None = None) -> Match:
        """The longest cached prefix of `tokens`, in whole pages. Touches it; does not lock it."""
        node = self._roots.get(namespace)
        if node is None:
            return Match(None, [])
        now, pages = next(self._clock), list[int]()
        for digit in self._digits(tokens, fork):
            child = node.children.get(digit)
            if child is None:
                break
            node = child
            node.last_used = now
            pages.append(node.page)
        self._offer(node)
        return Match(None if node.is_root else node, pages)

    def insert(self, namespace: bytes, tokens: list[int], pages: list[int], fork: Fork | None = None) -> Node | None:
        """Remember the full pages of `tokens`; `pages[i]` holds the i-th. Returns the deepest node, None if none.

        The tree takes a reference of its own on each page that is new to it. Where it has a page for the same tokens
        already, it keeps that one.
        """
        node = self._roots.get(namespace) or Node(namespace, None, (), -1)
        now = next(self._clock)
        for digit, page in zip(self._digits(tokens, fork), pages, strict=False):
            child = node.children.get(digit)
            if child is None:
                child = self._adopt(node, digit, page)
            node = child
            node.last_used = now
        self._offer(node)
        return None if node.is_root else node

    def lock(self, node: Node) -> None:
        node.locks += 1

    def unlock(self, node: Node) -> None:
        assert node.locks > 0, "unlocked more often than locked"
        node.locks -= 1
        self._offer(node)

    def evict(self, wanted: int) -> int:
        """Drop unlocked leaves until the pool has `wanted` pages available or none is left. Returns pages dropped."""
        dropped = 0
        while self._pool.available < wanted and self._heap:
            last_used, _, node = heapq.heappop(self._heap)
            if node.last_used == last_used and self._is_evictable(node):
                self._drop(node)
                dropped += 1
        return dropped

    def check_integrity(self) -> None:
        """Every node holds a page somebody references, and every evictable leaf can be found by `evict`."""
        nodes = list(self._nodes())
        assert len(nodes) == self._size
        assert len({node.page for node in nodes}) == len(nodes), "two nodes hold one page"
        offered = {(last_used, id(node)) for last_used, _, node in self._heap}
        for node in nodes:
            assert self._pool.references(node.page) > 0, f"page {node.page} of the tree is free"
            assert node.locks >= 0
            assert node.parent is not None
            assert node.parent.children[node.digit] is node
            assert sum(isinstance(part, int) for part in node.digit) == self._page_size
            assert not node.parent.is_forked or node.is_forked, "a fork joins its stem again"
            assert node.parent.is_root or node.parent.last_used >= node.last_used
            assert not self._is_evictable(node) or (node.last_used, id(node)) in offered
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

    def _adopt(self, parent: Node, digit: Digit, page: int) -> Node:
        child = Node(parent.namespace, parent, digit, page)
        parent.children[digit] = child
        if parent.is_root:
            self._roots[parent.namespace] = parent
        self._pool.share([page])
        self._size += 1
        return child

    def _drop(self, node: Node) -> None:
        parent = node.parent
        assert parent is not None
        del parent.children[node.digit]
        node.parent = None
        self._size -= 1
        self._pool.free([node.page])
        if parent.is_root and not parent.children:
            del self._roots[parent.namespace]
        self._offer(parent)

    def _is_evictable(self, node: Node) -> bool:
        return not (node.is_root or node.children or node.locks)

    def _offer(self, node: Node) -> None:
        if not self._is_evictable(node):
            return
        if len(self._heap) > 2 * self._size + 64:  # nothing evicts while the pool is roomy: do not grow for ever
            self._heap = [(n.last_used, next(self._ties), n) for n in self._nodes() if self._is_evictable(n)]
            heapq.heapify(self._heap)
        heapq.heappush(self._heap, (node.last_used, next(self._ties), node))

    def _nodes(self) -> Iterator[Node]:
        stack = [child for root in self._roots.values() for child in root.children.values()]
        while stack:
            node = stack.pop()
            stack.extend(node.children.values())
            yield node
