import { Button, Text } from "@mantine/core";
import { useForm } from "@mantine/form";
import { useDisclosure } from "@mantine/hooks";
import { IconCreditCard } from "@tabler/icons-react";
import { AmountInput } from "../shared/AmountInput";
import { FormModal } from "../shared/FormModal";
import { chartValue, formatMoney } from "../shared/money";
import { usePaymentOptions, useStartPayment } from "./payments";

const CENTS = /^\d{1,7}(\.\d{1,2})?$/;

/** Only there where the platform takes payments, and for whom they are. */
export function AddCreditButton() {
  const options = usePaymentOptions();
  const [opened, modal] = useDisclosure(false);
  if (!options) return null;
  return (
    <>
      <Button leftSection={<IconCreditCard size={16} aria-hidden />} onClick={modal.open}>
        Add credit
      </Button>
      <AddCreditModal
        opened={opened}
        onClose={modal.close}
        minimum={options.minimum}
        maximum={options.maximum}
      />
    </>
  );
}

interface Props {
  opened: boolean;
  onClose: () => void;
  minimum: string;
  maximum: string;
}

function AddCreditModal({ opened, onClose, minimum, maximum }: Props) {
  const start = useStartPayment();
  const form = useForm({
    initialValues: { amount: "" },
    validate: { amount: (value) => problemOf(value.trim(), minimum, maximum) },
  });
  const close = () => {
    form.reset();
    start.reset();
    onClose();
  };
  const submit = ({ amount }: typeof form.values) =>
    start.mutate({ kind: "credit", amount: amount.trim() });
  return (
    <FormModal
      title="Add credit"
      opened={opened}
      onClose={close}
      onSubmit={form.onSubmit(submit)}
      submit="Go to payment"
      pending={start.isPending || start.isSuccess}
      error={start.error}
    >
      <AmountInput label="Amount" data-autofocus {...form.getInputProps("amount")} />
      <Text size="xs" c="dimmed">
        Paid on Stripe's page. The credit is there once the payment went through, and is used before
        anything is owed.
      </Text>
    </FormModal>
  );
}

function problemOf(amount: string, minimum: string, maximum: string): string | null {
  const range = `${formatMoney(minimum)} to ${formatMoney(maximum)}`;
  if (!CENTS.test(amount)) return `Use ${range}, with at most 2 decimals`;
  const value = chartValue(amount);
  return value < chartValue(minimum) || value > chartValue(maximum) ? `Use ${range}` : null;
}
