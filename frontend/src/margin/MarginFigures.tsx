import { Card, SimpleGrid } from "@mantine/core";
import type { Margin } from "../api/types";
import { Figure } from "../shared/Figure";
import { formatMoney } from "../shared/money";
import { formatExactShare, formatSeconds } from "../shared/numbers";
import { energyText } from "./energy";

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
        <Figure label="Cost of the work" note={workNote(total)}>
          {formatMoney(total.cost)}
        </Figure>
        <Figure
          label="Margin"
          note={
            total.margin_percent === null
              ? "no revenue"
              : `${formatExactShare(Number(total.margin_percent) / 100)} of revenue`
          }
        >
          {formatMoney(total.margin)}
        </Figure>
        <Figure label="Idle" note={idleNote(device)}>
          {formatMoney(device.idle_cost)}
        </Figure>
      </SimpleGrid>
    </Card>
  );
}

function workNote(total: Margin["total"]): string {
  return joined([
    `prefill ${formatMoney(total.prefill_cost)}, decode ${formatMoney(total.decode_cost)}`,
    total.cost_per_1m && `${formatMoney(total.cost_per_1m)} per 1M tokens`,
    energyText(total.energy_joules, total.energy_cost),
  ]);
}

function idleNote(device: Margin["device"]): string {
  return joined([
    `${formatSeconds(device.idle_seconds)} of ${formatSeconds(device.up_seconds)} up, of all tenants`,
    energyText(device.idle_energy_joules, device.idle_energy_cost),
  ]);
}

function joined(parts: (string | null)[]): string {
  return parts.filter(Boolean).join("; ");
}
