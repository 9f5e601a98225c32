import { TextInput, type TextInputProps } from "@mantine/core";
import { currencySymbol } from "./money";

/** Money, as text: a number would round it. */
export function AmountInput(props: TextInputProps) {
  return <TextInput leftSection={currencySymbol()} inputMode="decimal" {...props} />;
}
