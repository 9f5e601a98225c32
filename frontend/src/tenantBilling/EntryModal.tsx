import { Select, Text, TextInput } from "@mantine/core";
import { useForm } from "@mantine/form";
import type { Invoice, Tenant } from "../api/types";
import { AmountInput } from "../shared/AmountInput";
import { notifyDone } from "../shared/confirm";
import { FormModal } from "../shared/FormModal";
import { formatMoney } from "../shared/money";
import { type NewEntry, useBookEntry } from "./queries";

const CENTS = /^\d{1,10}(\.\d{1,2})?$/;
const KINDS: { value: NewEntry["kind"]; label: string; what: string }[] = [
  { value: "payment", label: "Payment", what: "Money came in, by a bank transfer for example." },
  {
    value: "credit_note",
    label: "Credit note",
    what: "The invoice asked for too much. It gets a number, and gives back its share of the tax.",
  },
  { value: "write_off", label: "Write-off", what: "Nobody expects to be paid this any more." },
  { value: "refund", label: "Refund", what: "What was paid too much was sent back." },
  { value: "reversal", label: "Reversal", what: "A payment went back to the payer." },
];

interface Props {
  tenant: Tenant;
  invoice: Invoice;
  onClose: () => void;
}

/** What happened to an invoice after it was issued. It cannot be undone, only answered by another entry. */
export function EntryModal({ tenant, invoice, onClose }: Props) {
  const book = useBookEntry(tenant.id, invoice.id);
  const form = useForm({
    initialValues: {
      kind: "payment" as NewEntry["kind"],
      amount: invoice.open.startsWith("-") ? "" : invoice.open,
      reason: "",
      reference: "",
    },
    validate: {
      amount: (value) =>
        CENTS.test(value.trim()) && Number(value) > 0
          ? null
          : "Use an amount with at most 2 decimals, such as 12.50",
      reason: (value) => (value.trim() ? null : "Say what it is for: it stays on the record"),
    },
  });
  const kind = KINDS.find(({ value }) => value === form.values.kind);
  const submit = ({ amount, reason, reference, ...values }: typeof form.values) =>
    book.mutate(
      {
        ...values,
        amount: amount.trim(),
        reason: reason.trim(),
        ...(reference.trim() ? { reference: reference.trim() } : {}),
      },
      {
        onSuccess: (entry) => {
          notifyDone(
            `${kind?.label} of ${formatMoney(entry.amount)} is booked on ${invoice.number}.`,
          );
          onClose();
        },
      },
    );
  return (
    <FormModal
      title={`Book on ${invoice.number}`}
      opened
      onClose={onClose}
      onSubmit={form.onSubmit(submit)}
      submit="Book it"
      pending={book.isPending}
      error={book.error}
    >
      <Text size="sm" c="dimmed">
        {`${formatMoney(invoice.open)} of ${formatMoney(invoice.total)} is open. What is booked stays: only another entry answers it.`}
      </Text>
      <Select
        label="What happened"
        data={KINDS}
        allowDeselect={false}
        description={kind?.what}
        inputWrapperOrder={["label", "input", "description", "error"]}
        {...form.getInputProps("kind")}
      />
      <AmountInput label="Amount, tax included" {...form.getInputProps("amount")} />
      <TextInput label="Reason" maxLength={500} {...form.getInputProps("reason")} />
      <TextInput
        label="Reference"
        description="The bank's number, for example: the same one again books nothing more"
        maxLength={100}
        {...form.getInputProps("reference")}
      />
    </FormModal>
  );
}
