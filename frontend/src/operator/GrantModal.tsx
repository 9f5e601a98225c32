import { Select } from "@mantine/core";
import { useForm } from "@mantine/form";
import type { Tenant } from "../api/types";
import { AmountInput } from "../shared/AmountInput";
import { notifyDone } from "../shared/confirm";
import { amountProblem } from "../shared/decimalInput";
import { FormModal } from "../shared/FormModal";
import { formatMoney } from "../shared/money";
import { type NewGrant, useGiveGrant } from "./queries";

const KINDS = [
  { value: "promo", label: "A present" },
  { value: "paid", label: "Bought in advance" },
];

interface Props {
  tenant: Tenant;
  opened: boolean;
  onClose: () => void;
}

export function GrantModal({ tenant, opened, onClose }: Props) {
  const give = useGiveGrant(tenant.id);
  const form = useForm({
    initialValues: { amount: "", kind: "promo" as NonNullable<NewGrant["kind"]> },
    validate: { amount: amountProblem },
  });
  const close = () => {
    form.reset();
    give.reset();
    onClose();
  };
  const submit = ({ amount, kind }: typeof form.values) =>
    give.mutate(
      { amount: amount.trim(), kind },
      {
        onSuccess: (grant) => {
          notifyDone(`${tenant.name} has ${formatMoney(grant.amount)} more.`);
          close();
        },
      },
    );
  return (
    <FormModal
      title={`Give credit to ${tenant.name}`}
      opened={opened}
      onClose={close}
      onSubmit={form.onSubmit(submit)}
      submit="Give the credit"
      pending={give.isPending}
      error={give.error}
    >
      <AmountInput label="Amount" data-autofocus {...form.getInputProps("amount")} />
      <Select label="Kind" data={KINDS} allowDeselect={false} {...form.getInputProps("kind")} />
    </FormModal>
  );
}
