import { NumberInput, SimpleGrid, TextInput } from "@mantine/core";
import { useForm } from "@mantine/form";
import type { Tenant } from "../api/types";
import { PartyFields, ZoneField, zoneProblem } from "../billing/ProfileFields";
import type { Profile } from "../billing/profile";
import { notifyDone } from "../shared/confirm";
import { FormModal } from "../shared/FormModal";
import { useChangeProfile } from "./queries";

const RATE = /^(100|\d{1,2})(\.\d{1,3})?$/;
const DAY = /^\d{4}-\d{2}-\d{2}$/;

interface Props {
  tenant: Tenant;
  profile: Profile;
  onClose: () => void;
}

/** Invoices that were issued stay as they are. */
export function ProfileModal({ tenant, profile, onClose }: Props) {
  const change = useChangeProfile(tenant.id);
  const form = useForm<Profile>({
    initialValues: profile,
    validate: {
      tax_rate: (value) =>
        RATE.test(value.trim()) ? null : "Use percent with at most 3 decimals, such as 19",
      anchor: (value) => (DAY.test(value) ? null : "Use a day such as 2026-01-01"),
      time_zone: zoneProblem,
    },
  });
  const submit = (values: Profile) =>
    change.mutate(
      { ...values, tax_rate: values.tax_rate.trim() },
      {
        onSuccess: () => {
          notifyDone(`The next invoices of ${tenant.name} will be so.`);
          onClose();
        },
      },
    );
  return (
    <FormModal
      title={`How ${tenant.name} is billed`}
      opened
      onClose={onClose}
      onSubmit={form.onSubmit(submit)}
      submit="Save"
      pending={change.isPending}
      error={change.error}
    >
      <PartyFields nameLabel="Name on invoices" field={form.getInputProps} />
      <SimpleGrid cols={2}>
        <TextInput label="Name of the tax" maxLength={50} {...form.getInputProps("tax_name")} />
        <TextInput label="Percent" inputMode="decimal" {...form.getInputProps("tax_rate")} />
        <NumberInput
          label="Days until an invoice is due"
          min={0}
          max={365}
          allowDecimal={false}
          {...form.getInputProps("payment_days")}
        />
        <TextInput label="Periods begin on the day of" {...form.getInputProps("anchor")} />
      </SimpleGrid>
      <ZoneField field={form.getInputProps} />
    </FormModal>
  );
}
