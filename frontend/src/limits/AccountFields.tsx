import { AmountInput } from "../shared/AmountInput";
import { CountInput } from "../shared/CountInput";
import type { LimitValues } from "./form";

interface Props {
  field: (name: keyof LimitValues) => object;
}

/** What an account has besides: how much it may owe, and its share of the engine. */
export function AccountFields({ field }: Props) {
  return (
    <>
      <AmountInput
        label="May owe beyond its credit"
        description="0 sells for credit only"
        {...field("postpaid_limit")}
      />
      <CountInput
        label="Weight"
        description="Share of the engine while others wait too: 2 gets twice what 1 gets"
        min={0.01}
        max={100}
        allowDecimal
        decimalScale={2}
        {...field("tenant_weight")}
      />
    </>
  );
}
