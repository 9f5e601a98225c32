import { Card, SimpleGrid } from "@mantine/core";
import type { Margin } from "../api/types";
import { Figure } from "../shared/Figure";
import { formatMoney } from "../shared/money";
import { formatSeconds } from "../shared/numbers";

export function MarginFigures({ total, device }: Pick<Margin, "total" | "device">) {
  return (
    <Card withBorder component="section" aria-label="In all">
      <SimpleGrid cols={{ base: 2, lg: 4 }}>
        <Figure
          label="Revenue"
          note={total.revenue_per_1m && `${formatMoney(total.revenue_per_1m)} per 1M tokens`}
        >
          {formatMoney(total.revenue)}
        </Figure>
        <Figure
          label="Cost of the work"
          note={`prefill ${formatMoney(total.prefill_cost)}, decode ${formatMoney(total.decode_cost)}${total.cost_per_1m ? `; ${formatMoney(total.cost_per_1m)} per 1M tokens` : ""}`}
        >
          {formatMoney(total.cost)}
        </Figure>
        <Figure
          label="Margin"
          note={
            total.margin_percent === null ? "no revenue" : `${total.margin_percent} % of revenue`
          }
        >
          {formatMoney(total.margin)}
        </Figure>
        <Figure
          label="Idle"
          note={`${formatSeconds(device.idle_seconds)} of ${formatSeconds(device.up_seconds)} up, of all tenants`}
        >
          {formatMoney(device.idle_cost)}
        </Figure>
      </SimpleGrid>
    </Card>
  );
}
