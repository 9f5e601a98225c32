"""The words in which `settings.BEYOND_ITS_OWN` is written. Apart from `tenants.isolation`, which needs the models."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Readable:
    """Rows of others that a tenant may read. rows: SQL, `{me}` is the tenant's id. by: the table that decides it."""

    rows: str
    by: str


@dataclass(frozen=True)
class Beyond:
    """What is not simply each tenant's own, by table.

    shared: rows of no tenant are everybody's to read. added: and to add. operators: the platform's alone.
    append_only: nobody may update or delete.
    """

    shared: frozenset[str] = frozenset()
    added: frozenset[str] = frozenset()
    readable: dict[str, Readable] = field(default_factory=dict)
    operators: frozenset[str] = frozenset()
    append_only: frozenset[str] = frozenset()
