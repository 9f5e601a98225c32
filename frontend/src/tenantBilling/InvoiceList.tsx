import { Button, Stack, Table, Title } from "@mantine/core";
import { type ReactNode, useState } from "react";
import type { Invoice, Tenant } from "../api/types";
import { INVOICE_COLUMNS, InvoiceCells } from "../billing/InvoiceCells";
import { DataTable } from "../shared/DataTable";
import { ErrorState } from "../shared/ErrorState";
import { LoadingCards } from "../shared/LoadingCards";
import { EntryModal } from "./EntryModal";
import { useTenantInvoices } from "./queries";

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
      <DataTable columns={INVOICE_COLUMNS} minWidth={720}>
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
      <InvoiceCells invoice={invoice} />
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
