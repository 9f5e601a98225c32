import { SimpleGrid } from "@mantine/core";
import type { Latency } from "../api/types";
import { formatMilliseconds } from "../shared/numbers";
import { useLatency } from "../usage/queries";
import type { Range } from "../usage/range";
import { FigureCard } from "./FigureCard";

const FIGURES = [
  { label: "First token, p50", of: "ttft_ms", quantile: "p50" },
  { label: "First token, p95", of: "ttft_ms", quantile: "p95" },
  { label: "Between tokens, p50", of: "itl_ms", quantile: "p50" },
  { label: "Between tokens, p95", of: "itl_ms", quantile: "p95" },
] as const;

/** How fast answers were: half of them were as fast as p50, all but one in twenty as p95. */
export function LatencyFigures({ current, previous }: { current: Range; previous: Range }) {
  const now = useLatency(current);
  const before = useLatency(previous);
  if (!now.data) return null;
  return (
    <SimpleGrid cols={{ base: 2, lg: 4 }}>
      {FIGURES.map((figure) => {
        const value = millisecondsOf(now.data, figure);
        const then = millisecondsOf(before.data, figure);
        return (
          <FigureCard
            key={figure.label}
            label={figure.label}
            shown={value === null ? "–" : formatMilliseconds(value)}
            value={value}
            before={then === null ? null : { shown: formatMilliseconds(then), value: then }}
          />
        );
      })}
    </SimpleGrid>
  );
}

function millisecondsOf(
  latency: Latency | undefined,
  figure: (typeof FIGURES)[number],
): number | null {
  return latency?.[figure.of]?.[figure.quantile] ?? null;
}
