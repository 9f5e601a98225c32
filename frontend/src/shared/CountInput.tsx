import { NumberInput, type NumberInputProps } from "@mantine/core";
import { separators } from "./numbers";

/** A whole number unless told otherwise, written as the viewer writes numbers. */
export function CountInput(props: NumberInputProps) {
  const { group, decimal } = separators();
  return (
    <NumberInput
      min={1}
      allowDecimal={false}
      thousandSeparator={group}
      decimalSeparator={decimal}
      {...props}
    />
  );
}
