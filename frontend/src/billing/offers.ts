import { chartValue, formatMoney } from "../shared/money";
import type { Offer } from "./pricePlan";

/** "with $0.20 for running an adapter and $2.50 for globex in it"; null: nothing is in it. */
export function containedText({ surcharge, markup, owner }: Offer): string | null {
  const parts = [
    chartValue(surcharge) > 0 ? `${formatMoney(surcharge)} for running an adapter` : null,
    chartValue(markup) > 0 ? `${formatMoney(markup)} for ${owner}` : null,
  ].filter((part) => part !== null);
  return parts.length > 0 ? `with ${parts.join(" and ")} in it` : null;
}
