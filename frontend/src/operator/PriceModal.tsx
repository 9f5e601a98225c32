import { Select, Text, TextInput } from "@mantine/core";
import { useForm } from "@mantine/form";
import type { Tenant } from "../api/types";
import { useWorkspace } from "../session/context";
import { notifyDone } from "../shared/confirm";
import { amountProblem } from "../shared/decimalInput";
import { FormModal } from "../shared/FormModal";
import { useSetPrice } from "./queries";

const RATES = [
  { name: "input", label: "Input" },
  { name: "cached_input", label: "Cached input" },
  { name: "output", label: "Output" },
] as const;

interface Props {
  opened: boolean;
  onClose: () => void;
  tenants: Tenant[];
}

export function PriceModal({ opened, onClose, tenants }: Props) {
  const { session } = useWorkspace();
  const setPrice = useSetPrice();
  const form = useForm({
    initialValues: { tenant_id: "", input: "", cached_input: "", output: "" },
    validate: { input: amountProblem, cached_input: amountProblem, output: amountProblem },
  });
  const close = () => {
    form.reset();
    setPrice.reset();
    onClose();
  };
  const submit = ({ tenant_id: tenantId, ...rates }: typeof form.values) =>
    setPrice.mutate(
      {
        ...rates,
        base_model: session.base_model.name,
        ...(tenantId ? { tenant_id: tenantId } : {}),
      },
      {
        onSuccess: () => {
          notifyDone("The price holds from now on.");
          close();
        },
      },
    );
  const choices = [
    { value: "", label: "Everybody" },
    ...tenants.map(({ id, name }) => ({ value: id, label: name })),
  ];
  return (
    <FormModal
      title={`Price of ${session.base_model.name}`}
      opened={opened}
      onClose={close}
      onSubmit={form.onSubmit(submit)}
      submit="Set the price"
      pending={setPrice.isPending}
      error={setPrice.error}
    >
      <Text size="sm" c="dimmed">
        Dollars per million tokens: 2.50 means that a million tokens cost $2.50. Requests that run
        now keep their price.
      </Text>
      <Select
        label="For"
        data={choices}
        allowDeselect={false}
        {...form.getInputProps("tenant_id")}
      />
      {RATES.map(({ name, label }) => (
        <TextInput
          key={name}
          label={label}
          leftSection="$"
          inputMode="decimal"
          {...form.getInputProps(name)}
        />
      ))}
    </FormModal>
  );
}
