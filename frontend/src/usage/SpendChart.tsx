import "@mantine/charts/styles.css";
import { BarChart } from "@mantine/charts";
import { Card, Group, Text, Title } from "@mantine/core";
import { ErrorState } from "../shared/ErrorState";
import { LoadingCards } from "../shared/LoadingCards";
import { type Grouping, useTimeseries } from "./queries";
import type { Range } from "./range";
import { chartRows, seriesOf, stepLabel } from "./series";

const money = new Intl.NumberFormat("en-US", {
  style: "currency",
  currency: "USD",
  maximumSignificantDigits: 3,
});

/** Spend over time. Heights are floats; the exact amounts are in the table below. */
export default function SpendChart({ range, grouping }: { range: Range; grouping: Grouping }) {
  const timeseries = useTimeseries(range, grouping);
  if (timeseries.isPending) return <LoadingCards count={1} height={320} />;
  if (timeseries.isError) {
    return <ErrorState error={timeseries.error} what="The chart could not be drawn" />;
  }
  const points = timeseries.data.data;
  return (
    <Card withBorder component="section" aria-label="Spend over time">
      <Group justify="space-between" mb="md">
        <Title order={2}>Spend over time</Title>
        <Text size="xs" c="dimmed">
          {range.step === "hour" ? "per hour, UTC" : "per day, UTC"}
        </Text>
      </Group>
      <BarChart
        h={260}
        data={chartRows(points, range)}
        dataKey="at"
        type="stacked"
        series={seriesOf(points).map(({ group, label, color }) => ({ name: group, label, color }))}
        valueFormatter={(value) => money.format(value)}
        withLegend
        legendProps={{ verticalAlign: "bottom" }}
        gridAxis="x"
        tickLine="none"
        xAxisProps={{
          tickFormatter: (at: string) => stepLabel(at, range.step),
          interval: "equidistantPreserveStart",
          minTickGap: 24,
        }}
        yAxisProps={{ width: 72 }}
        tooltipProps={{ labelFormatter: (at) => stepLabel(String(at), range.step) }}
        maxBarWidth={36}
        role="img"
        aria-label={`Spend per ${range.step}, split by ${grouping}`}
      />
    </Card>
  );
}
