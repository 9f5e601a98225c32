import { Badge, Button, Group, Table } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { IconDownload } from "@tabler/icons-react";
import type { Invoice } from "../api/types";
import { notifyFailed } from "../shared/confirm";
import { ACTIONS, type Column, DataTable } from "../shared/DataTable";
import { formatMoney } from "../shared/money";
import { formatPeriod, formatUtcDate } from "../shared/time";
import { InvoiceModal } from "./InvoiceModal";
import { PayButton } from "./PayButton";
import { useInvoicePdf } from "./queries";

const COLORS: Record<Invoice["state"], string> = { open: "veneer", overdue: "red", paid: "gray" };

const COLUMNS: (string | Column)[] = [
  "Number",
  "Period",
  { label: "Total", right: true },
  { label: "Open", right: true },
  "Due",
  "State",
  ACTIONS,
];

export function InvoiceTable({ invoices }: { invoices: Invoice[] }) {
  return (
    <DataTable columns={COLUMNS} minWidth={760}>
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
      <Table.Td>
        <Group gap="xs" justify="flex-end" wrap="nowrap">
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
