import type { Usage } from "../api/types";
import { toCsv } from "../shared/csv";
import type { Grouping } from "./queries";

const NUMBERS = [
  "requests",
  "prompt_tokens",
  "cached_tokens",
  "completion_tokens",
  "device_seconds",
  "amount",
  "cost",
  "amount_per_1m",
  "cost_per_1m",
] as const;

/** The table as the server sent it: amounts with every digit. */
export function usageCsv(usage: Usage, grouping: Grouping): string {
  const rows = usage.data.map((row) => [row.label, row.group, ...NUMBERS.map((name) => row[name])]);
  return toCsv([grouping, `${grouping}_id`, ...NUMBERS], rows);
}

export function usageFileName(usage: Usage, grouping: Grouping, ending: "csv" | "json"): string {
  return `veneer-usage-by-${grouping}-${usage.from.slice(0, 10)}-${usage.to.slice(0, 10)}.${ending}`;
}
