import { Button, Card, Group, Table, Text, Title, Tooltip } from "@mantine/core";
import { IconDownload } from "@tabler/icons-react";
import type { Usage, UsageNumbers } from "../api/types";
import { downloadText } from "../shared/csv";
import { formatExactMoney, formatMoney } from "../shared/money";
import { formatCount, formatSeconds } from "../shared/numbers";
import { usageCsv, usageFileName } from "./export";
import type { Grouping } from "./queries";
import classes from "./UsageTable.module.css";

const HEADS = [
  "Requests",
  "Input",
  "Cached",
  "Output",
  "Device",
  "Spend",
  "Price / 1M",
  "Cost / 1M",
];

export function UsageTable({ usage, grouping }: { usage: Usage; grouping: Grouping }) {
  const download = () =>
    downloadText(usageFileName(usage, grouping), usageCsv(usage, grouping), "text/csv");
  return (
    <Card withBorder padding={0} component="section" aria-label="Usage table">
      <Group justify="space-between" p="md">
        <Title order={2}>{grouping === "adapter" ? "By adapter" : "By key"}</Title>
        <Button
          size="xs"
          variant="default"
          leftSection={<IconDownload size={14} aria-hidden />}
          onClick={download}
        >
          Download CSV
        </Button>
      </Group>
      <Table.ScrollContainer minWidth={820}>
        <Table horizontalSpacing="sm" fz="sm" className={classes.table}>
          <Table.Thead>
            <Table.Tr>
              <Table.Th>{grouping === "adapter" ? "Adapter" : "Key"}</Table.Th>
              {HEADS.map((head) => (
                <Table.Th key={head} ta="right">
                  {head}
                </Table.Th>
              ))}
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {usage.data.map((row) => (
              <NumberRow key={row.group} label={row.label} numbers={row} />
            ))}
          </Table.Tbody>
          <Table.Tfoot>
            <NumberRow label="Total" numbers={usage.total} strong />
          </Table.Tfoot>
        </Table>
      </Table.ScrollContainer>
    </Card>
  );
}

interface RowProps {
  label: string;
  numbers: UsageNumbers;
  strong?: boolean;
}

function NumberRow({ label, numbers, strong = false }: RowProps) {
  return (
    <Table.Tr fw={strong ? 650 : undefined}>
      <Table.Td>
        <Text size="sm" fw={600}>
          {label}
        </Text>
      </Table.Td>
      <Table.Td ta="right">{formatCount(numbers.requests)}</Table.Td>
      <Table.Td ta="right">{formatCount(numbers.prompt_tokens)}</Table.Td>
      <Table.Td ta="right">{formatCount(numbers.cached_tokens)}</Table.Td>
      <Table.Td ta="right">{formatCount(numbers.completion_tokens)}</Table.Td>
      <Table.Td ta="right">{formatSeconds(numbers.device_seconds)}</Table.Td>
      <Table.Td ta="right">
        <Money value={numbers.amount} />
      </Table.Td>
      <Table.Td ta="right">
        <Money value={numbers.amount_per_1m} />
      </Table.Td>
      <Table.Td ta="right">
        <Money value={numbers.cost_per_1m} />
      </Table.Td>
    </Table.Tr>
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
