import { Card, DataList, Group, Progress, Text, Title, Tooltip } from "@mantine/core";
import type { AmountParts } from "../api/types";
import { ErrorState } from "../shared/ErrorState";
import { LoadingCards } from "../shared/LoadingCards";
import { chartValue, formatExactMoney, formatMoney } from "../shared/money";
import { formatShare } from "../shared/numbers";
import { type Only, useComposition } from "./queries";
import type { Range } from "./range";

const PARTS = [
  { name: "input", label: "Input", color: "veneer.8" },
  { name: "cached_input", label: "Cached input", color: "cyan.7" },
  { name: "output", label: "Output", color: "indigo.6" },
  { name: "surcharge", label: "Adapter surcharge", color: "orange.7" },
  { name: "markup", label: "Owners' mark-up", color: "grape.6" },
] as const;

/** What the spend is made of, and what the prefix cache took off it. */
export function Composition({ range, only }: { range: Range; only: Only }) {
  const parts = useComposition(range, only);
  if (parts.isPending) return <LoadingCards count={1} height={150} />;
  if (parts.isError) {
    return (
      <ErrorState
        error={parts.error}
        what="The parts of the price could not be read"
        onRetry={() => parts.refetch()}
      />
    );
  }
  return (
    <Card withBorder component="section" aria-label="What the spend is made of">
      <Title order={2} mb="sm">
        What the spend is made of
      </Title>
      <PartsBar parts={parts.data} />
      <PartsList parts={parts.data} />
      <Text size="sm" mt="sm">
        {"The prefix cache saved "}
        <Tooltip label={formatExactMoney(parts.data.cache_savings)}>
          <Text span fw={650} className="figures">
            {formatMoney(parts.data.cache_savings)}
          </Text>
        </Tooltip>
        {": what its tokens would have cost more, had they been computed."}
      </Text>
    </Card>
  );
}

function PartsBar({ parts }: { parts: AmountParts }) {
  const whole = chartValue(parts.amount);
  if (whole === 0) return null;
  return (
    <Progress.Root size="lg" mb="md" aria-hidden>
      {PARTS.map(({ name, color }) => (
        <Progress.Section
          key={name}
          value={(100 * chartValue(parts[name])) / whole}
          color={color}
          withAria={false}
        />
      ))}
    </Progress.Root>
  );
}

/** The parts with every digit: they add up to the spend. */
export function PartsList({ parts }: { parts: AmountParts }) {
  const whole = chartValue(parts.amount);
  const share = (value: string) => (whole > 0 ? formatShare(chartValue(value) / whole) : "");
  return (
    <DataList size="sm" gap={4} labelWidth="160px">
      {PARTS.map(({ name, label, color }) => (
        <DataList.Item key={name}>
          <DataList.ItemLabel>
            <Group gap={6} wrap="nowrap">
              <Swatch color={color} />
              {label}
            </Group>
          </DataList.ItemLabel>
          <DataList.ItemValue>
            <Text span size="sm" className="figures">
              {formatExactMoney(parts[name])}
            </Text>{" "}
            <Text span size="xs" c="dimmed" className="figures">
              {share(parts[name])}
            </Text>
          </DataList.ItemValue>
        </DataList.Item>
      ))}
    </DataList>
  );
}

function Swatch({ color }: { color: string }) {
  const [name, shade] = color.split(".");
  return (
    <span
      aria-hidden
      style={{
        width: 10,
        height: 10,
        borderRadius: 2,
        flexShrink: 0,
        background: `var(--mantine-color-${name}-${shade})`,
      }}
    />
  );
}
