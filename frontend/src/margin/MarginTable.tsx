import { Card, Table, Text, Title } from "@mantine/core";
import type { Margin } from "../api/types";
import { DataTable } from "../shared/DataTable";
import { formatMoney } from "../shared/money";
import { formatCount, formatExactShare, formatSeconds } from "../shared/numbers";
import { energyText } from "./energy";
import { GROUPINGS, type Grouping } from "./queries";

type Money = Margin["total"];

const ON_PHONES = ["Revenue", "Cost", "Margin"];
const FIGURES = [
  "Requests",
  "Tokens",
  "Revenue",
  "Cost",
  "Prefill",
  "Decode",
  "Margin",
  "Cache saved",
].map((label) => ({ label, right: true, wide: !ON_PHONES.includes(label) }));
const WITH_TENANT: Grouping[] = ["adapter", "key"];

export function MarginTable({ margin, grouping }: { margin: Margin; grouping: Grouping }) {
  const name = GROUPINGS.find(({ value }) => value === grouping)?.label ?? "";
  const hasTenant = WITH_TENANT.includes(grouping);
  const columns = [name, ...(hasTenant ? ["Tenant"] : []), ...FIGURES];
  return (
    <Card withBorder padding={0} component="section" aria-label="Margin table">
      <Title order={2} p="md">{`By ${name.toLowerCase()}`}</Title>
      <DataTable
        columns={columns}
        minWidth={960}
        bare
        dense
        foot={<Row label="Total" money={margin.total} tenant={hasTenant ? "" : null} />}
      >
        {margin.data.map((row) => (
          <Row
            key={row.group}
            label={row.label}
            money={row}
            tenant={hasTenant ? (row.tenant ?? "") : null}
          />
        ))}
      </DataTable>
    </Card>
  );
}

/** tenant: null where the table has no such column. */
function Row({ label, money, tenant }: { label: string; money: Money; tenant: string | null }) {
  const tokens = money.prompt_tokens + money.completion_tokens;
  const isLoss = money.margin.startsWith("-");
  return (
    <Table.Tr style={{ whiteSpace: "nowrap" }}>
      <Table.Td fw={600}>{label}</Table.Td>
      {tenant !== null && <Table.Td>{tenant}</Table.Td>}
      <Table.Td ta="right">{formatCount(money.requests)}</Table.Td>
      <Table.Td ta="right">{formatCount(tokens)}</Table.Td>
      <Table.Td ta="right">{formatMoney(money.revenue)}</Table.Td>
      <Table.Td ta="right">
        {formatMoney(money.cost)}
        <Text size="xs" c="dimmed">
          {energyText(money.energy_joules, money.energy_cost)}
        </Text>
      </Table.Td>
      <Cost cost={money.prefill_cost} seconds={money.prefill_seconds} />
      <Cost cost={money.decode_cost} seconds={money.decode_seconds} />
      <Table.Td ta="right" c={isLoss ? "error" : undefined} fw={600}>
        {formatMoney(money.margin)}
        <Text size="xs" c="dimmed">
          {money.margin_percent === null
            ? "no revenue"
            : formatExactShare(Number(money.margin_percent) / 100)}
        </Text>
      </Table.Td>
      <Table.Td ta="right">{formatMoney(money.cache_savings)}</Table.Td>
    </Table.Tr>
  );
}

function Cost({ cost, seconds }: { cost: string; seconds: string }) {
  return (
    <Table.Td ta="right">
      {formatMoney(cost)}
      <Text size="xs" c="dimmed">
        {formatSeconds(seconds)}
      </Text>
    </Table.Td>
  );
}
