import { Badge, Stack, Table, Title } from "@mantine/core";
import type { Invoice } from "../api/types";
import { type Column, DataTable } from "../shared/DataTable";
import { ErrorState } from "../shared/ErrorState";
import { chartValue, formatMoney } from "../shared/money";
import { formatDate } from "../shared/time";
import { type Payment, usePayments } from "./payments";

const COLUMNS: (string | Column)[] = [
  "Started",
  "For",
  { label: "Amount", right: true },
  { label: "Taken back", right: true },
  "State",
];

const STATES: Record<Payment["state"], { label: string; color: string }> = {
  started: { label: "under way", color: "veneer" },
  paid: { label: "paid", color: "gray" },
  failed: { label: "not paid", color: "red" },
};

/** Nothing where nobody ever paid through the console. */
export function Payments({ invoices }: { invoices: Invoice[] }) {
  const payments = usePayments();
  if (payments.isError) {
    return (
      <ErrorState
        error={payments.error}
        what="The payments could not be read"
        onRetry={() => payments.refetch()}
      />
    );
  }
  if (!payments.data?.length) return null;
  const numbers = new Map(invoices.map(({ id, number }) => [id, number]));
  return (
    <Stack gap="xs">
      <Title order={2}>Payments</Title>
      <DataTable columns={COLUMNS} minWidth={600}>
        {payments.data.map((payment) => (
          <PaymentRow
            key={payment.id}
            payment={payment}
            number={numbers.get(payment.invoice_id ?? "")}
          />
        ))}
      </DataTable>
    </Stack>
  );
}

function PaymentRow({ payment, number }: { payment: Payment; number: string | undefined }) {
  const state = STATES[payment.state];
  return (
    <Table.Tr>
      <Table.Td>{formatDate(payment.created_at)}</Table.Td>
      <Table.Td>
        {payment.kind === "credit" ? "Prepaid credit" : `Invoice ${number ?? ""}`}
      </Table.Td>
      <Table.Td ta="right" className="figures">
        {formatMoney(payment.amount)}
      </Table.Td>
      <Table.Td ta="right" className="figures">
        {chartValue(payment.reversed) > 0 ? formatMoney(payment.reversed) : ""}
      </Table.Td>
      <Table.Td>
        <Badge variant="light" color={state.color} tt="none">
          {state.label}
        </Badge>
      </Table.Td>
    </Table.Tr>
  );
}
