import { Badge, Table } from "@mantine/core";
import type { Invoice } from "../api/types";
import { ACTIONS, type Column } from "../shared/DataTable";
import { formatMoney } from "../shared/money";
import { formatPeriod, formatUtcDate } from "../shared/time";

const COLORS: Record<Invoice["state"], string> = { open: "veneer", overdue: "red", paid: "gray" };

/** Of a list of invoices: those of `InvoiceCells`, and what may be done with each. */
export const INVOICE_COLUMNS: (string | Column)[] = [
  "Number",
  { label: "Period", wide: true },
  { label: "Total", right: true },
  { label: "Open", right: true, wide: true },
  { label: "Due", wide: true },
  "State",
  ACTIONS,
];

export function InvoiceCells({ invoice }: { invoice: Invoice }) {
  return (
    <>
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
    </>
  );
}
