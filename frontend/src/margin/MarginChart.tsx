import "@mantine/charts/styles.css";
import { BarChart } from "@mantine/charts";
import { Card, Text, Title } from "@mantine/core";
import type { Margin } from "../api/types";
import { chartValue, formatChartValue } from "../shared/money";

const MOST = 48;
const SERIES = [
  { name: "Margin", color: "veneer.6" },
  { name: "Prefill", color: "indigo.5" },
  { name: "Decode", color: "orange.5" },
];

/** Revenue as its parts: what the work cost, and what is left. Heights are floats; the table has the exact amounts. */
export default function MarginChart({ rows }: { rows: Margin["data"] }) {
  const shown = rows.slice(0, MOST);
  return (
    <Card withBorder component="section" aria-label="Cost and margin">
      <Title order={2}>Cost and margin</Title>
      <Text size="xs" c="dimmed" mb="md">
        {rows.length > MOST
          ? `The first ${MOST} of ${rows.length}. A loss hangs below the line.`
          : "A loss hangs below the line."}
      </Text>
      <BarChart
        h={240}
        data={shown.map((row) => ({
          label: row.label,
          Margin: chartValue(row.margin),
          Prefill: chartValue(row.prefill_cost),
          Decode: chartValue(row.decode_cost),
        }))}
        dataKey="label"
        type="stacked"
        series={SERIES}
        valueFormatter={formatChartValue}
        withLegend
        legendProps={{ verticalAlign: "bottom" }}
        gridAxis="x"
        tickLine="none"
        yAxisProps={{ width: 72 }}
        xAxisProps={{ interval: "equidistantPreserveStart", minTickGap: 24 }}
        maxBarWidth={48}
        barChartProps={{ stackOffset: "sign" }}
        role="img"
        aria-label="Cost of prefill and decode, and the margin, by row of the table"
      />
    </Card>
  );
}
