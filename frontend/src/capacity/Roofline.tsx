import "@mantine/charts/styles.css";
import { LineChart } from "@mantine/charts";
import { Card, Text, Title } from "@mantine/core";
import type { ModelSize } from "../api/types";
import { formatCount, formatShort } from "../shared/numbers";
import { answer, type Question, roof } from "./arithmetic";
import { formatFlops } from "./flops";
import type { Measured } from "./measured";

interface Props {
  size: ModelSize;
  question: Question;
  measured: Measured | null;
}

const TICKS = [1, 4, 16, 64, 256, 1024, 4096];
const BOUND = "Bound of the device";
const MEASURED = "This engine, measured";

/** Tokens of a step against the arithmetic reached: both axes are logarithmic. */
export default function Roofline({ size, question, measured }: Props) {
  const rows = rowsOf(size, question, measured);
  return (
    <Card withBorder component="section" aria-label="Roofline">
      <Title order={2}>Roofline</Title>
      <Text size="xs" c="dimmed" mb="md">
        {words(measured)}
      </Text>
      <LineChart
        h={300}
        data={rows}
        dataKey="tokens"
        series={[
          { name: BOUND, color: "indigo.5" },
          ...(measured ? [{ name: MEASURED, color: "orange.6" }] : []),
        ]}
        curveType="linear"
        withLegend
        gridAxis="xy"
        tickLine="none"
        valueFormatter={formatFlops}
        xAxisLabel="Tokens in a step"
        xAxisProps={{
          type: "number",
          scale: "log",
          domain: [1, 8192],
          ticks: TICKS,
          tickFormatter: formatCount,
        }}
        yAxisProps={{ type: "number", scale: "log", domain: decades(rows), width: 115 }}
        tooltipProps={{
          labelFormatter: (tokens) => `${formatShort(Number(tokens))} tokens in a step`,
        }}
        lineProps={(series) => ({
          isAnimationActive: false,
          dot: series.name === MEASURED ? { r: 6, strokeWidth: 2 } : false,
        })}
        role="img"
        aria-label="Arithmetic that a step can reach by its tokens, and what the engine reaches"
      />
    </Card>
  );
}

function words(measured: Measured | null): string {
  const bound = "Left of the bend reading the weights bounds a step, right of it arithmetic does.";
  if (!measured)
    return `${bound} The running engine is shown once it serves this model and has worked.`;
  return `${bound} The engine on ${measured.device}: ${formatShort(measured.tokensPerStep)} tokens a step over ${formatCount(measured.steps)} steps, ${formatFlops(measured.flops)}.`;
}

type Row = { tokens: number; [name: string]: number };

/** From the decade below the lowest point to the one above the highest, so that none lies on the edge. */
function decades(rows: Row[]): [number, number] {
  const values = rows.flatMap((row) =>
    [row[BOUND], row[MEASURED]].filter((value) => value !== undefined),
  );
  return [
    10 ** Math.floor(Math.log10(Math.min(...values)) - 0.2),
    10 ** Math.ceil(Math.log10(Math.max(...values)) + 0.2),
  ];
}

function rowsOf(size: ModelSize, question: Question, measured: Measured | null) {
  const { ridgeTokens } = answer(size, question);
  const corners = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, ridgeTokens];
  const rows: Row[] = corners
    .filter((tokens) => tokens >= 1 && tokens <= 8192)
    .map((tokens) => ({ tokens, [BOUND]: roof(size, question, tokens) }));
  if (measured) rows.push({ tokens: measured.tokensPerStep, [MEASURED]: measured.flops });
  return rows.sort((a, b) => a.tokens - b.tokens);
}
