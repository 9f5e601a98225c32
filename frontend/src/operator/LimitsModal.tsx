import { Modal, NumberInput, Text } from "@mantine/core";
import { useForm } from "@mantine/form";
import type { Limits, Tenant } from "../api/types";
import { changesOf, LIMIT_PROBLEMS, type LimitValues, valuesOf } from "../limits/form";
import { LimitFields } from "../limits/LimitFields";
import { AmountInput } from "../shared/AmountInput";
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

interface TenantValues extends LimitValues {
  postpaid_limit: string;
  tenant_weight: number | "";
}

function initialValues(limits: Limits): TenantValues {
  return {
    ...valuesOf(limits),
    postpaid_limit: limits.postpaid_limit ?? "",
    tenant_weight: Number(limits.tenant_weight),
  };
}

function LimitsForm({ tenant, opened, onClose, limits }: Props & { limits: Limits }) {
  const save = useSetLimits(tenant.id);
  const form = useForm({
    initialValues: initialValues(limits),
    validate: {
      ...LIMIT_PROBLEMS,
      postpaid_limit: optionalAmountProblem,
      tenant_weight: (weight) => (weight === "" ? "Between 0.01 and 100; 1 is the usual" : null),
    },
  });
  const submit = (values: TenantValues) =>
    save.mutate(
      {
        ...changesOf(values),
        postpaid_limit: values.postpaid_limit.trim() || null,
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
      <LimitFields field={(name) => form.getInputProps(name)} />
      <AmountInput
        label="May owe beyond its credit"
        description="0 sells for credit only"
        {...form.getInputProps("postpaid_limit")}
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
