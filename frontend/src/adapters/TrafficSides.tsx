import { Card, Group, SegmentedControl, SimpleGrid, Stack, Text } from "@mantine/core";
import { useState } from "react";
import type { Adapter, TrafficSide } from "../api/types";
import { ErrorState } from "../shared/ErrorState";
import { LoadingCards } from "../shared/LoadingCards";
import { formatCount, formatExactShare, formatMilliseconds } from "../shared/numbers";
import { useTraffic } from "./queries";

const WINDOWS = [
  { value: "15", label: "15 min" },
  { value: "60", label: "1 h" },
  { value: "1440", label: "24 h" },
];

/** How each side of a split does under live traffic: what to look at while a canary's share is raised. */
export function TrafficSides({ adapter }: { adapter: Adapter }) {
  const [minutes, setMinutes] = useState("60");
  const traffic = useTraffic(adapter, Number(minutes));
  return (
    <Stack gap="xs">
      <Group justify="space-between">
        <Text size="sm" fw={500}>
          Live traffic
        </Text>
        <SegmentedControl
          size="xs"
          aria-label="Time of the traffic"
          data={WINDOWS}
          value={minutes}
          onChange={setMinutes}
        />
      </Group>
      {traffic.isPending && <LoadingCards count={1} height={100} />}
      {traffic.isError && (
        <ErrorState
          error={traffic.error}
          what="The traffic could not be read"
          onRetry={() => traffic.refetch()}
        />
      )}
      {traffic.data && (
        <SimpleGrid cols={{ base: 1, xs: 2 }}>
          {traffic.data.sides.map((side) => (
            <Side key={side.version_id} side={side} />
          ))}
        </SimpleGrid>
      )}
    </Stack>
  );
}

function Side({ side }: { side: TrafficSide }) {
  const rows = [
    ["Requests", formatCount(side.requests)],
    ["Errors", side.error_rate === null ? "–" : formatExactShare(side.error_rate)],
    ["Whole answer", spread(side.latency_ms)],
    ["Per token", spread(side.ms_per_token)],
  ];
  return (
    <Card
      withBorder
      padding="sm"
      component="section"
      aria-label={`Traffic of version ${side.version}`}
    >
      <Text size="sm" fw={650}>{`version ${side.version}`}</Text>
      {rows.map(([label, value]) => (
        <Group key={label} justify="space-between" gap="xs" wrap="nowrap">
          <Text size="xs" c="dimmed">
            {label}
          </Text>
          <Text size="xs" className="figures" ta="right">
            {value}
          </Text>
        </Group>
      ))}
    </Card>
  );
}

function spread(found: TrafficSide["latency_ms"]): string {
  if (!found) return "–";
  return `p50 ${formatMilliseconds(found.p50)}, p95 ${formatMilliseconds(found.p95)}`;
}
