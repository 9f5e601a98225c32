import { Badge, Button, Stack, Table, Title } from "@mantine/core";
import { type ReactNode, useState } from "react";
import type { Invoice, Tenant } from "../api/types";
import { ACTIONS, type Column, DataTable } from "../shared/DataTable";
import { ErrorState } from "../shared/ErrorState";
import { LoadingCards } from "../shared/LoadingCards";
import { formatMoney } from "../shared/money";
import { formatPeriod, formatUtcDate } from "../shared/time";
import { EntryModal } from "./EntryModal";
import { useTenantInvoices } from "./queries";

const COLUMNS: (string | Column)[] = [
  "Number",
  "Period",
  { label: "Total", right: true },
  { label: "Open", right: true },
  "Due",
  "State",
  ACTIONS,
];
const COLORS: Record<Invoice["state"], string> = { open: "veneer", overdue: "red", paid: "gray" };

export function InvoiceList({ tenant, empty }: { tenant: Tenant; empty: ReactNode }) {
  const [booking, book] = useState<Invoice | null>(null);
  const invoices = useTenantInvoices(tenant.id);
  if (invoices.isPending) return <LoadingCards height={48} />;
  if (invoices.isError) {
    return (
      <ErrorState
        error={invoices.error}
        what="The invoices could not be read"
        onRetry={() => invoices.refetch()}
      />
    );
  }
  if (invoices.data.length === 0) return empty;
  return (
    <Stack gap="xs">
      <Title order={2}>Invoices</Title>
      <DataTable columns={COLUMNS} minWidth={720}>
        {invoices.data.map((invoice) => (
          <Row key={invoice.id} invoice={invoice} onBook={() => book(invoice)} />
        ))}
      </DataTable>
      {booking && <EntryModal tenant={tenant} invoice={booking} onClose={() => book(null)} />}
    </Stack>
  );
}

function Row({ invoice, onBook }: { invoice: Invoice; onBook: () => void }) {
  return (
    <Table.Tr>
      <Table.Td fw={600}>{invoice.number}</Table.Td>
      <Table.Td>
        {formatPeriod(invoice.period_start, invoice.period_end, invoice.time_zone)}
      </Table.Td>
      <Table.Td ta="right" className="figures">
        {formatMoney(invoice.total)}
      </Table.Td>
      <Table.Td ta="right" className="figures">
        {formatMoney(invoice.open)}
      </Table.Td>
      <Table.Td>{formatUtcDate(invoice.due_on)}</Table.Td>
      <Table.Td>
        <Badge variant="light" color={COLORS[invoice.state]} tt="none">
          {invoice.state}
        </Badge>
      </Table.Td>
      <Table.Td ta="right">
        <Button
          size="compact-sm"
          variant="default"
          onClick={onBook}
          aria-label={`Book on ${invoice.number}`}
        >
          Book
        </Button>
      </Table.Td>
    </Table.Tr>
  );
}
