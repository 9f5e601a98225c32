import { Modal, Stack, Table, Text } from "@mantine/core";
import type { FullInvoice, Invoice } from "../api/types";
import { type Column, DataTable } from "../shared/DataTable";
import { ErrorState } from "../shared/ErrorState";
import { LoadingCards } from "../shared/LoadingCards";
import { formatMoney } from "../shared/money";
import { formatCount, formatRate } from "../shared/numbers";
import { formatDate } from "../shared/time";
import { useInvoice } from "./queries";

const ENTRIES: Record<FullInvoice["entries"][number]["kind"], string> = {
  payment: "Payment",
  credit_note: "Credit note",
  write_off: "Written off",
  refund: "Refund",
  reversal: "Taken back",
};

export function InvoiceModal({ invoice, onClose }: { invoice: Invoice; onClose: () => void }) {
  return (
    <Modal opened onClose={onClose} title={`Invoice ${invoice.number}`} size="xl">
      <Content id={invoice.id} />
    </Modal>
  );
}

function Content({ id }: { id: string }) {
  const invoice = useInvoice(id);
  if (invoice.isPending) return <LoadingCards count={1} height={200} />;
  if (invoice.isError) {
    return (
      <ErrorState
        error={invoice.error}
        what="The invoice could not be read"
        onRetry={() => invoice.refetch()}
      />
    );
  }
  return (
    <Stack>
      <Lines invoice={invoice.data} />
      {invoice.data.entries.length > 0 && <Entries invoice={invoice.data} />}
      <Text size="xs" c="dimmed">
        {`Days are those of ${invoice.data.time_zone}. Amounts are rounded to hundredths line by line; the lines add up to the subtotal.`}
      </Text>
    </Stack>
  );
}

const LINE_COLUMNS: (string | Column)[] = [
  "Line",
  ...["Requests", "Input", "Cached", "Output", "Amount"].map((label) => ({ label, right: true })),
];

function Lines({ invoice }: { invoice: FullInvoice }) {
  return (
    <DataTable columns={LINE_COLUMNS} minWidth={600} bare dense flush>
      {invoice.lines.map((line) => (
        <Table.Tr key={`${line.kind} ${line.label} ${line.price_id}`}>
          <Table.Td>{line.label}</Table.Td>
          {[line.requests, line.prompt_tokens, line.cached_tokens, line.completion_tokens].map(
            (count, column) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: the columns never move
              <Table.Td key={column} ta="right" className="figures">
                {formatCount(count)}
              </Table.Td>
            ),
          )}
          <Table.Td ta="right" className="figures">
            {formatMoney(line.amount)}
          </Table.Td>
        </Table.Tr>
      ))}
      <Sum label="Subtotal" value={invoice.subtotal} />
      <Sum
        label={`${invoice.tax_name || "Tax"} ${formatRate(invoice.tax_rate)}`}
        value={invoice.tax}
      />
      <Sum label="Total" value={invoice.total} />
    </DataTable>
  );
}

function Sum({ label, value }: { label: string; value: string }) {
  return (
    <Table.Tr fw={600}>
      <Table.Td colSpan={5}>{label}</Table.Td>
      <Table.Td ta="right" className="figures">
        {formatMoney(value)}
      </Table.Td>
    </Table.Tr>
  );
}

function Entries({ invoice }: { invoice: FullInvoice }) {
  return (
    <Table fz="sm">
      <Table.Tbody>
        {invoice.entries.map((entry) => (
          <Table.Tr key={entry.id}>
            <Table.Td>{ENTRIES[entry.kind]}</Table.Td>
            <Table.Td>{entry.number ?? entry.reference}</Table.Td>
            <Table.Td>{entry.reason}</Table.Td>
            <Table.Td>{formatDate(entry.created_at)}</Table.Td>
            <Table.Td ta="right" className="figures">
              {formatMoney(entry.amount)}
            </Table.Td>
          </Table.Tr>
        ))}
        <Table.Tr fw={600}>
          <Table.Td colSpan={4}>Open</Table.Td>
          <Table.Td ta="right" className="figures">
            {formatMoney(invoice.open)}
          </Table.Td>
        </Table.Tr>
      </Table.Tbody>
    </Table>
  );
}
