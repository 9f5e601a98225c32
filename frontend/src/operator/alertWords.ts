import type { Alert } from "../api/types";
import { formatMoney } from "../shared/money";
import { formatShare } from "../shared/numbers";

const NAMES: Record<Alert["kind"], string> = {
  "budget.threshold": "Budget",
  "key.expiring": "Key expires",
  "adapter.ready": "Adapter ready",
  "adapter.rejected": "Adapter rejected",
  "adapter.rolled_back": "Adapter rolled back",
  "adapter.revoked": "Share ended",
  "spend.unusual": "Unusual spend",
  "invoice.issued": "Invoice issued",
  "webhook.disabled": "Webhook off",
  "webhook.test": "Webhook tried",
  "discrepancy.opened": "Discrepancy",
};

export const KINDS = Object.entries(NAMES).map(([value, label]) => ({ value, label }));

export function kindName(kind: string): string {
  return NAMES[kind as Alert["kind"]] ?? kind;
}

const DECIMAL = /^\d+(\.\d+)?$/;

function money(value: unknown): string {
  return typeof value === "string" && DECIMAL.test(value) ? formatMoney(value) : String(value);
}

/** One sentence of what an alert is about. */
export function alertWords(kind: string, data: Record<string, unknown>): string {
  const words = wordsOf(kind, data);
  return words.charAt(0).toUpperCase() + words.slice(1);
}

function wordsOf(kind: string, data: Record<string, unknown>): string {
  switch (kind) {
    case "budget.threshold":
      return `${data.name} has used ${formatShare(Number(data.percent) / 100)} of its budget: ${money(data.spent)} of ${money(data.budget)}.`;
    case "adapter.ready":
      return `${data.name} passed its checks and may be called.`;
    case "adapter.rejected":
      return `${data.name} was refused: its report says why.`;
    case "spend.unusual":
      return `${data.name} has spent ${money(data.spent)} today, where ${money(data.usual)} is usual.`;
    case "key.expiring":
      return `The key ${data.name} ends on ${String(data.expires_at).slice(0, 10)}.`;
    case "invoice.issued":
      return `${data.number} over ${money(data.total)}, due on ${data.due_on}.`;
    case "webhook.test":
      return "A message to try the address.";
    case "discrepancy.opened":
      return `${String(data.discrepancy_kind).replaceAll("_", " ")}: ${data.request_id}.`;
    default:
      return Object.entries(data)
        .map(([name, value]) => `${name.replaceAll("_", " ")}: ${String(value)}`)
        .join(", ");
  }
}
