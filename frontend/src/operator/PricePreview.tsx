import { Alert, Group, Loader, Stack, Table, Text } from "@mantine/core";
import { messageOf } from "../api/errors";
import type { PricePreview as Preview } from "../api/types";
import { DataTable } from "../shared/DataTable";
import { formatMoney } from "../shared/money";
import { formatChange, plural } from "../shared/numbers";
import { formatUtcDate } from "../shared/time";
import { type NewPrice, usePricePreview } from "./queries";

const SHOWN = 5;
const COLUMNS = [
  "Tenant",
  { label: "Before", right: true },
  { label: "After", right: true },
  { label: "Change", right: true },
];

/** What the price would have made of last month's usage. Nothing is stored. */
export function PricePreview({ price }: { price: NewPrice }) {
  const preview = usePricePreview(price);
  if (preview.isPending) {
    return (
      <Group gap="xs" role="status">
        <Loader size="xs" aria-hidden />
        <Text size="sm" c="dimmed">
          Reckoning with last month's usage
        </Text>
      </Group>
    );
  }
  if (preview.isError) {
    return (
      <Alert color="orange" variant="light" title="The effect cannot be told">
        {messageOf(preview.error)}
      </Alert>
    );
  }
  return <Effect preview={preview.data} />;
}

function Effect({ preview }: { preview: Preview }) {
  const { total } = preview;
  const months = `${formatUtcDate(preview.from)} to ${formatUtcDate(preview.to)}`;
  if (total.requests === 0) {
    return (
      <Text size="sm" c="dimmed">
        {`From ${months} there was no usage that this price would have priced.`}
      </Text>
    );
  }
  const rest = preview.data.length - SHOWN;
  return (
    <Stack gap={4} component="section" aria-label="Effect on last month">
      <Text size="sm" fw={600}>
        {`On ${plural(total.requests, "request")} of ${months}: ${changeOf(total)}`}
      </Text>
      <DataTable
        columns={COLUMNS}
        minWidth={360}
        bare
        dense
        flush
        foot={<EffectRow name="Total" row={total} />}
      >
        {preview.data.slice(0, SHOWN).map((row) => (
          <EffectRow key={row.tenant_id} name={row.tenant} row={row} />
        ))}
      </DataTable>
      {rest > 0 && (
        <Text size="xs" c="dimmed">{`and ${plural(rest, "tenant")} more, who change less`}</Text>
      )}
    </Stack>
  );
}

type Money = Preview["total"];

function changeOf({ change, change_percent: percent }: Money): string {
  const sign = change.startsWith("-") ? "" : "+";
  return `${sign}${formatMoney(change)}${percent === null ? "" : ` (${formatChange(Number(percent) / 100)})`}`;
}

function EffectRow({ name, row }: { name: string; row: Money }) {
  return (
    <Table.Tr>
      <Table.Td>{name}</Table.Td>
      <Table.Td ta="right">{formatMoney(row.before)}</Table.Td>
      <Table.Td ta="right">{formatMoney(row.after)}</Table.Td>
      <Table.Td ta="right">{changeOf(row)}</Table.Td>
    </Table.Tr>
  );
}
