"""Usage events by the million, made by the database itself."""

import sys
from typing import Any, Final

import psycopg

CHUNK: Final = 1_000_000
KEYS, ADAPTERS = 5, 8
# All but the constraints' own: made again when the rows are there, which is faster than keeping them all along.
_INDEXES: Final = """
SELECT index.indexname, index.indexdef FROM pg_indexes index
WHERE tablename = 'billing_usageevent' AND NOT EXISTS (
    SELECT 1 FROM pg_constraint WHERE conname = index.indexname AND conrelid = 'billing_usageevent'::regclass
)
"""
# power(random(), 2): few tenants have much. A tenth of the requests is for the base model, a twentieth is of batches,
# one in a thousand came into the books an hour late.
_FILL: Final = """
INSERT INTO billing_usageevent (
    request_id, tenant_id, key_id, adapter_id, adapter_version_id, model, base_model, price_id, prompt_tokens,
    cached_tokens, completion_tokens, device_ns, amount, finish_reason, is_batch, started_at, first_at, finished_at,
    booked_at
)
SELECT 'bench_' || made.n, who.tenant_id, who.keys[1 + made.n %% cardinality(who.keys)],
    CASE WHEN made.adapter > 0 THEN 'adp_' || who.number || '_' || made.adapter END,
    CASE WHEN made.adapter > 0 THEN 'adv_' || who.number || '_' || made.adapter END,
    CASE WHEN made.adapter > 0 THEN 'adapter-' || made.adapter || '@1' ELSE %(model)s END,
    %(model)s, %(price)s, made.prompt, made.prompt / 3, made.completion, made.completion * 3000000,
    (made.prompt * 0.5 + made.completion * 1.5) / 1000000, CASE made.n %% 50 WHEN 0 THEN 'cancelled' ELSE 'stop' END,
    made.n %% 20 = 7, made.at - interval '2 seconds', made.at - (0.5 + made.early) * interval '1 second', made.at,
    least(now(), made.at + CASE made.n %% 1000 WHEN 0 THEN interval '1 hour' ELSE interval '0' END)
FROM (
    SELECT n, floor(%(tenants)s * power(random(), 2))::int AS number,
        (n %% 10) * (1 + n %% %(adapters)s) / 9 AS adapter,
        (50 + random() * 2000)::int AS prompt, (1 + random() * 500)::int AS completion, random() AS early,
        now() - %(days)s * interval '1 day' * (1 - n::float8 / %(events)s) AS at
    FROM generate_series(%(first)s::bigint, %(last)s::bigint) n
) made JOIN bench_who who ON who.number = made.number
"""


def fill(owner_url: str, *, tenants: list[tuple[str, list[str]]], events: int, days: int, model: str) -> None:
    """As the tables' owner, without triggers and foreign keys. tenants: each with its keys, the largest first."""
    with psycopg.connect(owner_url, autocommit=True) as conn:
        conn.execute("SET session_replication_role = replica")
        conn.execute("SELECT setseed(0.5)")
        conn.execute("CREATE TEMP TABLE bench_who (number int PRIMARY KEY, tenant_id text, keys text[])")
        for number, (tenant, keys) in enumerate(tenants):
            conn.execute("INSERT INTO bench_who VALUES (%s, %s, %s)", [number, tenant, keys])
        indexes = conn.execute(_INDEXES).fetchall()
        for name, _ in indexes:
            conn.execute(f"DROP INDEX {name}")  # our own names
        _insert(conn, tenants=len(tenants), events=events, days=days, model=model)
        for _, definition in indexes:
            conn.execute(definition)
        conn.execute("VACUUM (ANALYZE) billing_usageevent")


def _insert(conn: "psycopg.Connection[Any]", *, events: int, **params: Any) -> None:
    price = conn.execute("SELECT id FROM billing_price LIMIT 1").fetchone()
    assert price is not None
    for first in range(1, events + 1, CHUNK):
        last = min(events, first + CHUNK - 1)
        more = {"events": events, "price": price[0], "adapters": ADAPTERS, "first": first, "last": last}
        conn.execute(_FILL, {**params, **more})
        print(f"{last:,} events", file=sys.stderr)
