import { Button, Group, Table } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { IconDownload } from "@tabler/icons-react";
import type { Invoice } from "../api/types";
import { notifyFailed } from "../shared/confirm";
import { DataTable } from "../shared/DataTable";
import { INVOICE_COLUMNS, InvoiceCells } from "./InvoiceCells";
import { InvoiceModal } from "./InvoiceModal";
import { PayButton } from "./PayButton";
import { useInvoicePdf } from "./queries";

export function InvoiceTable({ invoices }: { invoices: Invoice[] }) {
  return (
    <DataTable columns={INVOICE_COLUMNS} minWidth={760}>
      {invoices.map((invoice) => (
        <InvoiceRow key={invoice.id} invoice={invoice} />
      ))}
    </DataTable>
  );
}

function InvoiceRow({ invoice }: { invoice: Invoice }) {
  const [opened, view] = useDisclosure(false);
  return (
    <Table.Tr>
      <InvoiceCells invoice={invoice} />
      <Table.Td>
        <Group gap="xs" justify="flex-end">
          <Button
            size="compact-sm"
            variant="default"
            onClick={view.open}
            aria-label={`Show ${invoice.number}`}
          >
            Show
          </Button>
          <PdfButton invoice={invoice} />
          <PayButton invoice={invoice} />
        </Group>
        {opened && <InvoiceModal invoice={invoice} onClose={view.close} />}
      </Table.Td>
    </Table.Tr>
  );
}

function PdfButton({ invoice }: { invoice: Invoice }) {
  const pdf = useInvoicePdf();
  const save = () =>
    pdf.mutate(invoice, {
      onError: (error) => notifyFailed(`${invoice.number} was not saved`, error),
    });
  return (
    <Button
      size="compact-sm"
      variant="default"
      leftSection={<IconDownload size={14} aria-hidden />}
      onClick={save}
      loading={pdf.isPending}
      aria-label={`Save ${invoice.number} as PDF`}
    >
      PDF
    </Button>
  );
}
