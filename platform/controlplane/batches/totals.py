"""What the lines of a batch came to: the sum of the usage events of their newest attempts, to the last digit."""

from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from controlplane.batches.models import Batch
from controlplane.currency import exact_text
from tenants.sql import Plan, Query, run_sync

_OF_LINES: Final = """
SELECT coalesce(sum(event.amount), 0) AS amount, coalesce(sum(event.prompt_tokens), 0)::bigint AS prompt_tokens,
    coalesce(sum(event.cached_tokens), 0)::bigint AS cached_tokens,
    coalesce(sum(event.completion_tokens), 0)::bigint AS completion_tokens
FROM batches_batchline line
CROSS JOIN LATERAL generate_series(0, line.prompts::int - 1) AS prompt(number)
JOIN billing_usageevent event ON event.request_id = line.batch_id || '-' || line.number || '-' || line.attempt
    || CASE WHEN prompt.number > 0 THEN '-' || prompt.number ELSE '' END
WHERE line.tenant_id = %(tenant)s AND line.batch_id = %(batch)s AND line.state <> 'running'
"""


@dataclass(frozen=True)
class Totals:
    """Money, tokens."""

    amount: Decimal
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int

    @property
    def cost(self) -> str:
        return exact_text(self.amount)

    def usage(self) -> dict[str, Any]:
        return {
            "input_tokens": self.prompt_tokens,
            "input_tokens_details": {"cached_tokens": self.cached_tokens},
            "output_tokens": self.completion_tokens,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": self.prompt_tokens + self.completion_tokens,
        }


def totals_plan(*, tenant_id: str, batch_id: str) -> Plan[Totals]:
    [row] = yield Query(_OF_LINES, {"tenant": tenant_id, "batch": batch_id})
    return Totals(**row)


def totals_of(batch: Batch) -> Totals:
    """Of an ended batch what was kept at its end; of another so far."""
    if batch.amount is None:
        return run_sync(totals_plan(tenant_id=batch.tenant_id, batch_id=batch.id))
    prompt, cached, completion = batch.prompt_tokens, batch.cached_tokens, batch.completion_tokens
    return Totals(batch.amount, prompt or 0, cached or 0, completion or 0)
