import { ActionIcon, Button, Group, NumberInput, Select, Stack, Text } from "@mantine/core";
import { type UseFormReturnType, useForm } from "@mantine/form";
import { IconPlus, IconTrash } from "@tabler/icons-react";
import type { Tenant } from "../api/types";
import type { Agreement } from "../billing/pricePlan";
import { AmountInput } from "../shared/AmountInput";
import { notifyDone } from "../shared/confirm";
import { FormModal } from "../shared/FormModal";
import { type NewAgreement, useAgree } from "./queries";

const CENTS = /^\d{1,10}(\.\d{1,2})?$/;
const PERCENT = /^(100|\d{1,2})(\.\d{1,2})?$/;
const MODES = [
  { value: "graduated", label: "Each tier's discount on what lies within it" },
  { value: "volume", label: "The reached tier's discount on all of them" },
];

interface Values {
  minimum_fee: string;
  included_tokens: number | string;
  tier_mode: "graduated" | "volume";
  tiers: { at_least: string; discount: string }[];
}

interface Props {
  tenant: Tenant;
  current: Agreement | null;
  onClose: () => void;
}

/** A new agreement, which replaces the one before from now on. */
export function AgreementModal({ tenant, current, onClose }: Props) {
  const agree = useAgree(tenant.id);
  const form = useForm<Values>({
    initialValues: valuesOf(current),
    validate: {
      minimum_fee: centsProblem,
      tiers: {
        at_least: centsProblem,
        discount: (value) =>
          PERCENT.test(value.trim()) ? null : "Use percent with at most 2 decimals, up to 100",
      },
    },
  });
  const submit = (values: Values) =>
    agree.mutate(agreementOf(values), {
      onSuccess: () => {
        notifyDone(`The agreement with ${tenant.name} holds from now on.`);
        onClose();
      },
    });
  return (
    <FormModal
      title={`Agree anew with ${tenant.name}`}
      opened
      onClose={onClose}
      onSubmit={form.onSubmit(submit)}
      submit="Agree"
      pending={agree.isPending}
      error={agree.error}
    >
      <Text size="sm" c="dimmed">
        The agreement in force at a period's last instant counts for all of the period.
      </Text>
      <NumberInput
        label="Tokens included in a period"
        description="The dearest of the period are free"
        min={0}
        max={1e15}
        allowDecimal={false}
        thousandSeparator=","
        {...form.getInputProps("included_tokens")}
      />
      <AmountInput label="Minimum fee a period" {...form.getInputProps("minimum_fee")} />
      <Tiers form={form} />
    </FormModal>
  );
}

function Tiers({ form }: { form: UseFormReturnType<Values> }) {
  return (
    <Stack gap="xs">
      <Select
        label="Tiers"
        data={MODES}
        allowDeselect={false}
        {...form.getInputProps("tier_mode")}
      />
      {form.values.tiers.map((_, place) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a tier is its place
        <Group key={place} align="flex-start" wrap="nowrap">
          <AmountInput
            label="From"
            aria-label={`Tier ${place + 1}, from`}
            {...form.getInputProps(`tiers.${place}.at_least`)}
          />
          <AmountInput
            label="Percent off"
            aria-label={`Tier ${place + 1}, percent off`}
            leftSection="%"
            {...form.getInputProps(`tiers.${place}.discount`)}
          />
          <ActionIcon
            mt={25}
            size="lg"
            variant="subtle"
            color="red"
            onClick={() => form.removeListItem("tiers", place)}
            aria-label={`Remove tier ${place + 1}`}
          >
            <IconTrash size={16} aria-hidden />
          </ActionIcon>
        </Group>
      ))}
      <Button
        size="compact-sm"
        variant="default"
        w="fit-content"
        leftSection={<IconPlus size={14} aria-hidden />}
        onClick={() => form.insertListItem("tiers", { at_least: "", discount: "" })}
      >
        Add a tier
      </Button>
    </Stack>
  );
}

function centsProblem(value: string): string | null {
  return CENTS.test(value.trim()) ? null : "Use an amount with at most 2 decimals, such as 12.50";
}

function valuesOf(current: Agreement | null): Values {
  return {
    minimum_fee: current?.minimum_fee ?? "0",
    included_tokens: current?.included_tokens ?? 0,
    tier_mode: current?.tier_mode ?? "graduated",
    tiers: current?.tiers ?? [],
  };
}

function agreementOf({ tiers, included_tokens: included, ...values }: Values): NewAgreement {
  return {
    ...values,
    minimum_fee: values.minimum_fee.trim(),
    included_tokens: Number(included || 0),
    tiers: tiers.map(({ at_least, discount }) => ({
      at_least: at_least.trim(),
      discount: discount.trim(),
    })),
  };
}
