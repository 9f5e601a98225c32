import { Anchor, Badge, Card, Group, SegmentedControl, Table, Text, Title } from "@mantine/core";
import type { Generation } from "../api/types";
import { DataTable } from "../shared/DataTable";
import { ErrorState } from "../shared/ErrorState";
import { LoadingCards } from "../shared/LoadingCards";
import { LoadMore } from "../shared/LoadMore";
import { formatExactMoney } from "../shared/money";
import { formatCount, formatHundredths } from "../shared/numbers";
import { GenerationModal } from "./GenerationModal";
import { useGenerations } from "./queries";
import type { UsageView } from "./useUsageView";
import { formatInZone } from "./zone";

const OUTCOMES = [
  { value: "any", label: "All" },
  { value: "completed", label: "Completed" },
  { value: "cancelled", label: "Cancelled" },
  { value: "failed", label: "Failed" },
];
const right = (label: string) => ({ label, right: true, wide: label !== "Amount" });
const COLUMNS = [
  "Ended",
  "Model",
  { label: "Key", wide: true },
  right("Input"),
  right("Cached"),
  right("Output"),
  right("Seconds"),
  right("Amount"),
  "Outcome",
];
const COLORS = { completed: "gray", cancelled: "yellow", failed: "red" } as const;

/** The single requests that the sums above are of, the last to end first. */
export function Generations({ view }: { view: UsageView }) {
  return (
    <Card withBorder padding={0} component="section" aria-label="Generations">
      <Group justify="space-between" p="md">
        <Title order={2}>Generations</Title>
        <SegmentedControl
          size="xs"
          aria-label="Outcome"
          data={OUTCOMES}
          value={view.outcome}
          onChange={(outcome) => view.change({ outcome: outcome === "any" ? "" : outcome })}
        />
      </Group>
      <List view={view} />
      {view.generation && (
        <GenerationModal
          id={view.generation}
          tz={view.range.tz}
          onClose={() => view.change({ generation: "" })}
        />
      )}
    </Card>
  );
}

function List({ view }: { view: UsageView }) {
  const { list, rows } = useGenerations(view.range, view.only, view.outcome);
  if (list.isError) {
    return (
      <ErrorState
        error={list.error}
        what="The generations could not be read"
        onRetry={() => list.refetch()}
      />
    );
  }
  if (!rows) return <LoadingCards height={32} />;
  if (rows.length === 0) {
    return (
      <Text size="sm" c="dimmed" px="md" pb="md">
        None of these in the chosen time.
      </Text>
    );
  }
  return (
    <>
      <DataTable columns={COLUMNS} minWidth={960} bare dense>
        {rows.map((row) => (
          <Row
            key={row.id}
            row={row}
            tz={view.range.tz}
            onOpen={() => view.change({ generation: row.id })}
          />
        ))}
      </DataTable>
      <LoadMore shown={rows.length} what="generation" list={list} onward />
    </>
  );
}

function Row({ row, tz, onOpen }: { row: Generation; tz: string; onOpen: () => void }) {
  return (
    <Table.Tr>
      <Table.Td style={{ whiteSpace: "nowrap" }}>
        <Anchor
          component="button"
          type="button"
          fz="sm"
          onClick={onOpen}
          aria-label={`Show generation ${row.id}`}
        >
          {formatInZone(row.finished_at, tz)}
        </Anchor>
      </Table.Td>
      <Table.Td>{row.model}</Table.Td>
      <Table.Td>{row.key}</Table.Td>
      <Table.Td ta="right">{formatCount(row.prompt_tokens)}</Table.Td>
      <Table.Td ta="right">{formatCount(row.cached_tokens)}</Table.Td>
      <Table.Td ta="right">{formatCount(row.completion_tokens)}</Table.Td>
      <Table.Td ta="right">{formatHundredths(row.seconds)}</Table.Td>
      <Table.Td ta="right">{formatExactMoney(row.amount)}</Table.Td>
      <Table.Td>
        <Badge variant="light" color={COLORS[row.outcome]} tt="none">
          {row.outcome}
        </Badge>
      </Table.Td>
    </Table.Tr>
  );
}
