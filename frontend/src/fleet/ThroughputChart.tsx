import "@mantine/charts/styles.css";
import { AreaChart } from "@mantine/charts";
import { Text } from "@mantine/core";
import { formatShort } from "../shared/numbers";
import { formatClock } from "../shared/time";
import { type Look, newestRates } from "./rates";

/** Tokens a second since the page was opened, up to three minutes. */
export default function ThroughputChart({ looks }: { looks: Look[] }) {
  const rows = looks.flatMap((look, index) => {
    const rates = newestRates(looks.slice(0, index + 1));
    if (!rates) return [];
    return {
      at: formatClock(look.at * 1000),
      Generated: rates.generatedPerSecond,
      Prompt: Math.max(0, rates.computedPerSecond - rates.generatedPerSecond),
    };
  });
  return (
    <div>
      <Text size="sm" fw={500} mb={4}>
        Tokens per second
      </Text>
      <AreaChart
        h={180}
        data={rows}
        dataKey="at"
        type="stacked"
        series={[
          { name: "Generated", color: "veneer.6" },
          { name: "Prompt", color: "indigo.5" },
        ]}
        withDots={false}
        withLegend
        curveType="linear"
        gridAxis="x"
        tickLine="none"
        valueFormatter={formatShort}
        areaChartProps={{ margin: { left: 0, right: 8 } }}
        xAxisProps={{ minTickGap: 60 }}
        yAxisProps={{ width: 48 }}
        areaProps={{ isAnimationActive: false }}
        role="img"
        aria-label="Tokens computed per second, of prompts and of answers"
      />
    </div>
  );
}
