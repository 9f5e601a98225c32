import { Modal, NumberInput, Text, TextInput } from "@mantine/core";
import { useForm } from "@mantine/form";
import type { Limits, Tenant } from "../api/types";
import { notifyDone } from "../shared/confirm";
import { optionalAmountProblem } from "../shared/decimalInput";
import { ErrorState } from "../shared/ErrorState";
import { FormModal } from "../shared/FormModal";
import { LoadingCards } from "../shared/LoadingCards";
import { formatMoney } from "../shared/money";
import { useLimits, useSetLimits } from "./queries";

interface Props {
  tenant: Tenant;
  opened: boolean;
  onClose: () => void;
}

export function LimitsModal(props: Props) {
  return props.opened ? <LoadedLimits {...props} /> : null;
}

function LoadedLimits(props: Props) {
  const limits = useLimits(props.tenant.id);
  if (limits.data) return <LimitsForm {...props} limits={limits.data} />;
  return (
    <Modal opened onClose={props.onClose} title={`Limits of ${props.tenant.name}`}>
      {limits.isError ? (
        <ErrorState error={limits.error} what="The limits could not be read" />
      ) : (
        <LoadingCards height={36} />
      )}
    </Modal>
  );
}

const COUNTS = [
  { name: "requests_per_minute", label: "Requests per minute" },
  { name: "tokens_per_minute", label: "Tokens per minute" },
  { name: "tokens_per_day", label: "Tokens per day (UTC)" },
  { name: "concurrency", label: "Requests at the same time" },
] as const;

function countOf(value: number | ""): number | null {
  return value === "" ? null : value;
}

function LimitsForm({ tenant, opened, onClose, limits }: Props & { limits: Limits }) {
  const save = useSetLimits(tenant.id);
  const form = useForm({
    initialValues: {
      requests_per_minute: limits.requests_per_minute ?? ("" as const),
      tokens_per_minute: limits.tokens_per_minute ?? ("" as const),
      tokens_per_day: limits.tokens_per_day ?? ("" as const),
      concurrency: limits.concurrency ?? ("" as const),
      monthly_budget: limits.monthly_budget ?? "",
      tenant_weight: Number(limits.tenant_weight) as number | "",
    },
    validate: {
      monthly_budget: optionalAmountProblem,
      tenant_weight: (weight) => (weight === "" ? "Between 0.01 and 100; 1 is the usual" : null),
    },
  });
  const submit = (values: typeof form.values) =>
    save.mutate(
      {
        requests_per_minute: countOf(values.requests_per_minute),
        tokens_per_minute: countOf(values.tokens_per_minute),
        tokens_per_day: countOf(values.tokens_per_day),
        concurrency: countOf(values.concurrency),
        ...budgetChange(values.monthly_budget, limits),
        tenant_weight: String(values.tenant_weight),
      },
      {
        onSuccess: () => {
          notifyDone(`The limits of ${tenant.name} are saved.`);
          onClose();
        },
      },
    );
  return (
    <FormModal
      title={`Limits of ${tenant.name}`}
      opened={opened}
      onClose={onClose}
      onSubmit={form.onSubmit(submit)}
      submit="Save"
      pending={save.isPending}
      error={save.error}
    >
      <Text size="sm" c="dimmed">
        {`An empty field means no limit. Spent in this period: ${formatMoney(limits.spent)}.`}
      </Text>
      {COUNTS.map(({ name, label }) => (
        <NumberInput
          key={name}
          label={label}
          min={1}
          allowDecimal={false}
          thousandSeparator=","
          {...form.getInputProps(name)}
        />
      ))}
      <TextInput
        label="Monthly budget"
        description={
          limits.total_budget
            ? `There is a budget of ${formatMoney(limits.total_budget)} in all; a monthly one replaces it`
            : "Dollars per calendar month, UTC"
        }
        leftSection="$"
        inputMode="decimal"
        {...form.getInputProps("monthly_budget")}
      />
      <NumberInput
        label="Weight"
        description="Share of the engine while others wait too: 2 gets twice what 1 gets"
        min={0.01}
        max={100}
        decimalScale={2}
        {...form.getInputProps("tenant_weight")}
      />
    </FormModal>
  );
}

/** An untouched empty field must not take away a budget of the other kind. */
function budgetChange(text: string, limits: Limits): { monthly_budget?: string | null } {
  const budget = text.trim() || null;
  return budget === limits.monthly_budget ? {} : { monthly_budget: budget };
}
