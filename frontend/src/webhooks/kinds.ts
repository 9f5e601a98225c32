import type { AlertKind } from "../api/types";

/** What a webhook can be told of, in words. */
export const KINDS: { value: AlertKind; label: string }[] = [
  { value: "budget.threshold", label: "A budget is nearly spent" },
  { value: "key.expiring", label: "A key is about to expire" },
  { value: "adapter.ready", label: "An adapter is ready" },
  { value: "adapter.rejected", label: "An adapter was rejected" },
  { value: "adapter.rolled_back", label: "An adapter was rolled back" },
  { value: "adapter.revoked", label: "An adapter is not shared any more" },
  { value: "spend.unusual", label: "Spending is unusual" },
  { value: "invoice.issued", label: "An invoice was issued" },
  { value: "webhook.disabled", label: "A webhook was switched off" },
];

/** Also of those that nobody subscribes to, such as a test. */
export function kindWords(kind: string): string {
  if (kind === "webhook.test") return "A test";
  return KINDS.find(({ value }) => value === kind)?.label ?? kind;
}
