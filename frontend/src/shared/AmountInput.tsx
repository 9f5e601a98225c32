import { TextInput, type TextInputProps } from "@mantine/core";

/** Dollars, as text: a number would round them. */
export function AmountInput(props: TextInputProps) {
  return <TextInput leftSection="$" inputMode="decimal" {...props} />;
}
