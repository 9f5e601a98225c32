import "@mantine/charts/styles.css";
import { BarChart, LineChart } from "@mantine/charts";
import { Card, Group, Text, Title } from "@mantine/core";
import type { UsagePoint } from "../api/types";
import { ErrorState } from "../shared/ErrorState";
import { LoadingCards } from "../shared/LoadingCards";
import { formatChartValue } from "../shared/money";
import { type Grouping, type Only, useTimeseries, useUsage } from "./queries";
import { type Range, stepLabel, tooltipLabel } from "./range";
import { chartRows, seriesOf, unitCostRows } from "./series";

const SYNC = "usage";

interface Props {
  range: Range;
  grouping: Grouping;
  only: Only;
}

/** Spend over time. Heights are floats; the exact amounts are in the table below. */
export default function SpendChart({ range, grouping, only }: Props) {
  const timeseries = useTimeseries(range, grouping, only);
  if (timeseries.isPending) return <LoadingCards count={1} height={320} />;
  if (timeseries.isError) {
    return (
      <ErrorState
        error={timeseries.error}
        what="The chart could not be drawn"
        onRetry={() => timeseries.refetch()}
      />
    );
  }
  return (
    <Card withBorder component="section" aria-label="Spend over time">
      <Group justify="space-between" mb="md">
        <Title order={2}>Spend over time</Title>
        <Text size="xs" c="dimmed">{`per ${range.step}, ${range.tz}`}</Text>
      </Group>
      <Bars points={timeseries.data.data} range={range} grouping={grouping} />
      <UnitCost range={range} only={only} />
    </Card>
  );
}

function axes(range: Range) {
  return {
    dataKey: "at",
    gridAxis: "x" as const,
    tickLine: "none" as const,
    valueFormatter: formatChartValue,
    xAxisProps: {
      tickFormatter: (at: string) => stepLabel(at, range.step),
      interval: "equidistantPreserveStart" as const,
      minTickGap: 24,
    },
    yAxisProps: { width: 72 },
    tooltipProps: { labelFormatter: (at: unknown) => tooltipLabel(at, range.step) },
  };
}

function Bars({
  points,
  range,
  grouping,
}: {
  points: UsagePoint[];
  range: Range;
  grouping: Grouping;
}) {
  return (
    <BarChart
      h={260}
      data={chartRows(points, range)}
      type="stacked"
      series={seriesOf(points).map(({ group, label, color }) => ({ name: group, label, color }))}
      withLegend
      legendProps={{ verticalAlign: "bottom" }}
      maxBarWidth={36}
      barChartProps={{ syncId: SYNC }}
      {...axes(range)}
      role="img"
      aria-label={`Spend per ${range.step}, split by ${grouping}`}
    />
  );
}

/** What a million tokens were charged at beside what they took to make, step by step. */
function UnitCost({ range, only }: { range: Range; only: Only }) {
  const steps = useUsage(range, range.step, only);
  if (!steps.data) return null;
  return (
    <>
      <Title order={3} size="h5" mt="lg" mb="xs">
        Per 1M tokens
      </Title>
      <LineChart
        h={150}
        data={unitCostRows(steps.data.data, range)}
        series={[
          { name: "price", label: "Price paid", color: "veneer.6" },
          { name: "cost", label: "Device cost", color: "orange.6" },
        ]}
        connectNulls={false}
        curveType="linear"
        withLegend
        legendProps={{ verticalAlign: "bottom" }}
        lineChartProps={{ syncId: SYNC }}
        {...axes(range)}
        role="img"
        aria-label={`Price and cost of a million tokens per ${range.step}`}
      />
    </>
  );
}
