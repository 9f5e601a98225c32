import { NumberInput, Select, SimpleGrid, Text } from "@mantine/core";
import { useForm } from "@mantine/form";
import { useDebouncedValue } from "@mantine/hooks";
import type { Tenant } from "../api/types";
import { useWorkspace } from "../session/context";
import { AmountInput } from "../shared/AmountInput";
import { notifyDone } from "../shared/confirm";
import { amountProblem, optionalAmountProblem } from "../shared/decimalInput";
import { FormModal } from "../shared/FormModal";
import { formatMoney } from "../shared/money";
import { PricePreview } from "./PricePreview";
import { type NewPrice, useSetPrice } from "./queries";

const RATES = [
  { name: "input", label: "Input", note: "" },
  { name: "cached_input", label: "Cached input", note: "" },
  { name: "output", label: "Output", note: "" },
  { name: "adapter_surcharge", label: "With an adapter", note: "on top of each; empty: nothing" },
] as const;
const TYPING_MS = 400;

interface Props {
  opened: boolean;
  onClose: () => void;
  tenants: Tenant[];
}

interface Values {
  tenant_id: string;
  input: string;
  cached_input: string;
  output: string;
  adapter_surcharge: string;
  batch_discount: number | "";
}

function priceOf(values: Values, base_model: string): NewPrice {
  const { tenant_id, adapter_surcharge, batch_discount, ...rates } = values;
  return {
    base_model,
    input: rates.input.trim(),
    cached_input: rates.cached_input.trim(),
    output: rates.output.trim(),
    ...(adapter_surcharge.trim() ? { adapter_surcharge: adapter_surcharge.trim() } : {}),
    ...(batch_discount === "" ? {} : { batch_discount }),
    ...(tenant_id ? { tenant_id } : {}),
  };
}

export function PriceModal({ opened, onClose, tenants }: Props) {
  const { session } = useWorkspace();
  const setPrice = useSetPrice();
  const form = useForm<Values>({
    initialValues: {
      tenant_id: "",
      input: "",
      cached_input: "",
      output: "",
      adapter_surcharge: "",
      batch_discount: "",
    },
    validate: {
      input: amountProblem,
      cached_input: amountProblem,
      output: amountProblem,
      adapter_surcharge: optionalAmountProblem,
    },
  });
  const [typed] = useDebouncedValue(form.values, TYPING_MS);
  const close = () => {
    form.reset();
    setPrice.reset();
    onClose();
  };
  const submit = (values: Values) =>
    setPrice.mutate(priceOf(values, session.base_model.name), {
      onSuccess: () => {
        notifyDone("The price holds from now on.");
        close();
      },
    });
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
        {`Per million tokens: 2.50 means that a million tokens cost ${formatMoney("2.50")}. Requests that run now keep their price.`}
      </Text>
      <Select
        label="For"
        data={choices}
        allowDeselect={false}
        {...form.getInputProps("tenant_id")}
      />
      <SimpleGrid cols={2}>
        {RATES.map(({ name, label, note }) => (
          <AmountInput
            key={name}
            label={label}
            description={note || undefined}
            inputWrapperOrder={["label", "input", "description", "error"]}
            {...form.getInputProps(name)}
          />
        ))}
        <NumberInput
          label="Off for batches"
          suffix=" %"
          min={0}
          max={100}
          allowDecimal={false}
          {...form.getInputProps("batch_discount")}
        />
      </SimpleGrid>
      {opened && isComplete(typed) && (
        <PricePreview price={priceOf(typed, session.base_model.name)} />
      )}
    </FormModal>
  );
}

function isComplete(values: Values): boolean {
  const rates = [values.input, values.cached_input, values.output];
  return (
    rates.every((rate) => amountProblem(rate) === null) &&
    optionalAmountProblem(values.adapter_surcharge) === null
  );
}
