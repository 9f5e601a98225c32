import { Group, Select } from "@mantine/core";
import { AmountInput } from "../shared/AmountInput";
import { CountInput } from "../shared/CountInput";
import { COUNTS, type LimitValues } from "./form";

const PERIODS = [
  { value: "month", label: "per month (UTC)" },
  { value: "total", label: "in all" },
];

interface Props {
  /** What binds a field to its form: `form.getInputProps`. */
  field: (name: keyof LimitValues) => object;
}

/** The fields that the limits of all levels have in common. */
export function LimitFields({ field }: Props) {
  return (
    <>
      {COUNTS.map(({ name, label }) => (
        <CountInput key={name} label={label} {...field(name)} />
      ))}
      <Group grow align="flex-start">
        <AmountInput
          label="Budget"
          description="Above it requests are refused"
          {...field("budget")}
        />
        <Select
          label="Budgets are"
          description="Of the two kinds there is one"
          data={PERIODS}
          allowDeselect={false}
          {...field("period")}
        />
      </Group>
      <AmountInput
        label="Soft budget"
        description="From here on there is an alert, and requests still pass"
        {...field("soft_budget")}
      />
    </>
  );
}
