"""Page ids of the KV pool: who holds which. No tensors here."""

from collections.abc import Iterable


class PagePool:
    """Ids 0..size-1. Every holder (a page table, a prefix-cache node) counts one reference; at zero a page is free."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._free = list(range(size - 1, -1, -1))
        self._references = [0] * size

    @property
    def available(self) -> int:
        return len(self._free)

    def allocate(self, count: int) -> list[int]:
        """`count` pages with one reference each. Asking for more than `available` is the caller's bug."""
        assert 0 <= count <= len(self._free), f"{count} pages asked, {len(self._free)} free"
        pages = [self._free.pop() for _ in range(count)]
        for page in pages:
            self._references[page] = 1
        return pages

    def share(self, pages: Iterable[int]) -> None:
        """One more reference on each page, which somebody else holds already."""
        for page in pages:
            assert self._references[page] > 0, f"page {page} is free: nobody can share it"
            self._references[page] += 1

    def free(self, pages: Iterable[int]) -> None:
        """One reference less on each page."""
        for page in pages:
            assert self._references[page] > 0, f"page {page} freed twice"
            self._references[page] -= 1
            if not self._references[page]:
                self._free.append(page)

    def references(self, page: int) -> int:
        return self._references[page]

    def check_integrity(self) -> None:
        """A page is in the free list exactly when nobody references it."""
        assert len(set(self._free)) == len(self._free), "a page is free twice"
        assert sorted(self._free) == [page for page, count in enumerate(self._references) if count == 0]
        assert min(self._references, default=0) >= 0
