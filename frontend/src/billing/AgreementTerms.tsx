import { List } from "@mantine/core";
import { chartValue, formatExactMoney, formatMoney } from "../shared/money";
import { formatCount, formatRate } from "../shared/numbers";
import type { Agreement } from "./pricePlan";

/** What was agreed beyond prices, in words. */
export function AgreementTerms({ agreement }: { agreement: Agreement }) {
  const from =
    agreement.tier_mode === "volume"
      ? "everything once a period comes to"
      : "what a period comes to beyond";
  return (
    <List size="sm" px="xl" py="md" aria-label="What was agreed besides">
      {agreement.included_tokens > 0 && (
        <List.Item>{`${formatCount(agreement.included_tokens)} tokens of a period are included`}</List.Item>
      )}
      {agreement.tiers.map(({ at_least: edge, discount }) => (
        <List.Item key={edge}>
          {`${formatRate(discount)} off ${from} ${formatMoney(edge)}`}
        </List.Item>
      ))}
      {chartValue(agreement.minimum_fee) > 0 && (
        <List.Item>{`At least ${formatExactMoney(agreement.minimum_fee)} a period`}</List.Item>
      )}
    </List>
  );
}
