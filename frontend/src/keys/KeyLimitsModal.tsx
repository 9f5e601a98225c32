import { Modal, NumberInput, Select, Text } from "@mantine/core";
import { useForm } from "@mantine/form";
import type { ApiKey, KeyLimits } from "../api/types";
import { AmountInput } from "../shared/AmountInput";
import { notifyDone } from "../shared/confirm";
import { optionalAmountProblem } from "../shared/decimalInput";
import { ErrorState } from "../shared/ErrorState";
import { FormModal } from "../shared/FormModal";
import { LoadingCards } from "../shared/LoadingCards";
import { formatMoney } from "../shared/money";
import { type LimitChanges, useKeyLimits, useSetKeyLimits } from "./queries";

const COUNTS = [
  { name: "requests_per_minute", label: "Requests per minute" },
  { name: "tokens_per_minute", label: "Tokens per minute" },
  { name: "tokens_per_day", label: "Tokens per day (UTC)" },
  { name: "concurrency", label: "Requests at the same time" },
] as const;
const PERIODS = [
  { value: "month", label: "per calendar month, UTC" },
  { value: "total", label: "in all" },
];

interface Props {
  apiKey: ApiKey;
  onClose: () => void;
}

/** What a key may use; the tenant's own limits hold besides. */
export function KeyLimitsModal({ apiKey, onClose }: Props) {
  const limits = useKeyLimits(apiKey.id);
  if (limits.data) return <LimitsForm apiKey={apiKey} onClose={onClose} limits={limits.data} />;
  return (
    <Modal opened onClose={onClose} title={`Limits of ${apiKey.name}`}>
      {limits.isError ? (
        <ErrorState
          error={limits.error}
          what="The limits could not be read"
          onRetry={() => limits.refetch()}
        />
      ) : (
        <LoadingCards height={36} />
      )}
    </Modal>
  );
}

function valuesOf(limits: KeyLimits) {
  const count = (value: number | null): number | "" => value ?? "";
  return {
    requests_per_minute: count(limits.requests_per_minute),
    tokens_per_minute: count(limits.tokens_per_minute),
    tokens_per_day: count(limits.tokens_per_day),
    concurrency: count(limits.concurrency),
    budget: limits.monthly_budget ?? limits.total_budget ?? "",
    period: limits.total_budget === null ? "month" : "total",
  };
}

type Values = ReturnType<typeof valuesOf>;

/** There is one budget at a time: naming one of the two kinds replaces the other. */
export function changesOf({ budget, period, ...counts }: Values): LimitChanges {
  const nulls = Object.entries(counts).map(([name, value]) => [name, value === "" ? null : value]);
  const amount = budget.trim() || null;
  const named = period === "total" ? { total_budget: amount } : { monthly_budget: amount };
  return { ...Object.fromEntries(nulls), ...named };
}

function LimitsForm({ apiKey, onClose, limits }: Props & { limits: KeyLimits }) {
  const save = useSetKeyLimits(apiKey.id);
  const form = useForm({
    initialValues: valuesOf(limits),
    validate: { budget: optionalAmountProblem },
  });
  const submit = (values: Values) =>
    save.mutate(changesOf(values), {
      onSuccess: () => {
        notifyDone(`The limits of ${apiKey.name} are saved.`);
        onClose();
      },
    });
  return (
    <FormModal
      title={`Limits of ${apiKey.name}`}
      opened
      onClose={onClose}
      onSubmit={form.onSubmit(submit)}
      submit="Save"
      pending={save.isPending}
      error={save.error}
    >
      <Text size="sm" c="dimmed">
        {`An empty field means no limit of its own. Spent in the budget's period: ${formatMoney(limits.spent)}; held by requests that run: ${formatMoney(limits.held)}.`}
      </Text>
      <AmountInput label="Budget" {...form.getInputProps("budget")} />
      <Select
        label="The budget is"
        data={PERIODS}
        allowDeselect={false}
        {...form.getInputProps("period")}
      />
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
    </FormModal>
  );
}
