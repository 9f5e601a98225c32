import { Stack, Table, Title } from "@mantine/core";
import { type Column, DataTable } from "../shared/DataTable";
import { ErrorState } from "../shared/ErrorState";
import { formatMoney } from "../shared/money";
import { formatDate, formatDateTime } from "../shared/time";
import { type Credit, useCredits } from "./earnings";

const COLUMNS: (string | Column)[] = [
  "Since",
  "How it came",
  { label: "Amount", right: true },
  { label: "Left", right: true },
  "Expires",
];
const KINDS: Record<string, string> = {
  promo: "given by the platform",
  paid: "bought",
  earned: "earned by sharing",
};

/** Credit, and what is left of each; nothing where there never was any. */
export function CreditTable() {
  const credits = useCredits();
  if (credits.isError) {
    return (
      <ErrorState
        error={credits.error}
        what="The credit could not be read"
        onRetry={() => credits.refetch()}
      />
    );
  }
  if (!credits.data?.length) return null;
  return (
    <Stack gap="xs">
      <Title order={2}>Credit</Title>
      <DataTable columns={COLUMNS} minWidth={560}>
        {credits.data.map((credit) => (
          <CreditRow key={credit.id} credit={credit} />
        ))}
      </DataTable>
    </Stack>
  );
}

function CreditRow({ credit }: { credit: Credit }) {
  return (
    <Table.Tr>
      <Table.Td>{formatDate(credit.created_at)}</Table.Td>
      <Table.Td>{KINDS[credit.kind] ?? credit.kind}</Table.Td>
      <Table.Td ta="right" className="figures">
        {formatMoney(credit.amount)}
      </Table.Td>
      <Table.Td ta="right" className="figures">
        {formatMoney(credit.remaining)}
      </Table.Td>
      <Table.Td>{credit.expires_at ? formatDateTime(credit.expires_at) : "never"}</Table.Td>
    </Table.Tr>
  );
}
