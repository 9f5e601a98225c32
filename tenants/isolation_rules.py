"""The words in which `settings.BEYOND_ITS_OWN` is written. Apart from `tenants.isolation`, which needs the models."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Beyond:
    """What is not simply each tenant's own, by table. Rows of another tenant are readable nowhere: of what is shared
    between two, a view shows the columns that both may know (`adapters_grantedversion`).

    shared: rows of no tenant are everybody's to read. added: and to add. operators: the platform's alone.
    published: the platform's, and every tenant's to read. append_only: nobody may update or delete.
    """

    shared: frozenset[str] = frozenset()
    added: frozenset[str] = frozenset()
    operators: frozenset[str] = frozenset()
    published: frozenset[str] = frozenset()
    append_only: frozenset[str] = frozenset()
