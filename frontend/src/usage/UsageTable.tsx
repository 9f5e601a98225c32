import { ActionIcon, Anchor, Card, Group, Table, Text, Title, Tooltip } from "@mantine/core";
import { IconFilterOff } from "@tabler/icons-react";
import type { Usage, UsageNumbers } from "../api/types";
import { changeWords } from "../shared/change";
import { DataTable } from "../shared/DataTable";
import { chartValue, formatExactMoney, formatMoney } from "../shared/money";
import { formatCount, formatSeconds } from "../shared/numbers";
import { ExportMenu } from "./ExportMenu";
import type { Grouping } from "./queries";
import { GROUPINGS, type UsageView } from "./useUsageView";

const ON_PHONES = ["Requests", "Spend", "Price / 1M"];
const NUMBERS = [
  "Requests",
  "Input",
  "Cached",
  "Output",
  "Device",
  "Spend",
  "Price / 1M",
  "Cost / 1M",
].map((label) => ({ label, right: true, wide: !ON_PHONES.includes(label) }));

interface Props {
  usage: Usage;
  /** Of the time before, where it is compared. */
  previous: Usage | undefined;
  view: UsageView;
}

export function nameOf(grouping: Grouping): string {
  return GROUPINGS.find(({ value }) => value === grouping)?.label ?? grouping;
}

/** The sums by group, as exact as they are charged. A group's name shows it alone. */
export function UsageTable({ usage, previous, view }: Props) {
  const { grouping, only, change } = view;
  const before = new Map(previous?.data.map((row) => [row.group, row.amount]));
  const compared = previous ? [{ label: "Before", right: true }] : [];
  return (
    <Card withBorder padding={0} component="section" aria-label="Usage table">
      <Group justify="space-between" p="md">
        <Group gap="xs">
          <Title order={2}>{`By ${nameOf(grouping).toLowerCase()}`}</Title>
          {only[grouping] && <ShowAll onClick={() => change({ only: "" })} />}
        </Group>
        <ExportMenu usage={usage} view={view} />
      </Group>
      <DataTable
        columns={[nameOf(grouping), ...NUMBERS, ...compared]}
        minWidth={860}
        bare
        dense
        foot={
          <NumberRow
            label="Total"
            numbers={usage.total}
            before={previous?.total.amount}
            compares={previous !== undefined}
          />
        }
      >
        {usage.data.map((row) => (
          <NumberRow
            key={row.group}
            label={row.label}
            numbers={row}
            before={before.get(row.group)}
            compares={previous !== undefined}
            onOpen={() => change({ only: row.group })}
          />
        ))}
      </DataTable>
    </Card>
  );
}

function ShowAll({ onClick }: { onClick: () => void }) {
  return (
    <Tooltip label="Show all again">
      <ActionIcon variant="subtle" color="gray" onClick={onClick} aria-label="Show all again">
        <IconFilterOff size={16} aria-hidden />
      </ActionIcon>
    </Tooltip>
  );
}

interface RowProps {
  label: string;
  numbers: UsageNumbers;
  before: string | undefined;
  compares: boolean;
  onOpen?: () => void;
}

function NumberRow({ label, numbers, before, compares, onOpen }: RowProps) {
  const counts = [
    formatCount(numbers.requests),
    formatCount(numbers.prompt_tokens),
    formatCount(numbers.cached_tokens),
    formatCount(numbers.completion_tokens),
    formatSeconds(numbers.device_seconds),
  ];
  return (
    <Table.Tr fw={onOpen ? undefined : 650}>
      <Table.Td style={{ whiteSpace: "nowrap" }}>
        <GroupName label={label} onOpen={onOpen} />
      </Table.Td>
      {counts.map((text, column) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the columns never move
        <Table.Td key={column} ta="right" style={{ whiteSpace: "nowrap" }}>
          {text}
        </Table.Td>
      ))}
      {[numbers.amount, numbers.amount_per_1m, numbers.cost_per_1m].map((value, column) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the columns never move
        <Table.Td key={column} ta="right">
          <Money value={value} />
        </Table.Td>
      ))}
      {compares && (
        <Table.Td ta="right" style={{ whiteSpace: "nowrap" }}>
          <Before now={numbers.amount} before={before} />
        </Table.Td>
      )}
    </Table.Tr>
  );
}

function GroupName({ label, onOpen }: { label: string; onOpen: (() => void) | undefined }) {
  if (!onOpen) return label;
  return (
    <Anchor component="button" type="button" fz="sm" fw={600} onClick={onOpen}>
      {label}
    </Anchor>
  );
}

function Before({ now, before }: { now: string; before: string | undefined }) {
  if (before === undefined) return "nothing";
  const words = changeWords(chartValue(now), chartValue(before));
  return (
    <>
      <Money value={before} />
      {words && <Text span size="xs" c="dimmed">{` ${words}`}</Text>}
    </>
  );
}

function Money({ value }: { value: string | null }) {
  if (value === null) return "–";
  return (
    <Tooltip label={formatExactMoney(value)}>
      <span>{formatMoney(value)}</span>
    </Tooltip>
  );
}
