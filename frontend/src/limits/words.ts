import type { Level, LimitUse } from "../api/types";
import { formatMoney } from "../shared/money";
import { formatCompact } from "../shared/numbers";

const KINDS: Record<LimitUse["kind"], string> = {
  requests_per_minute: "Requests per minute",
  tokens_per_minute: "Tokens per minute",
  tokens_per_day: "Tokens today",
  tokens_per_month: "Tokens this month",
  concurrency: "Requests at the same time",
  monthly_budget: "Budget of this month",
  total_budget: "Budget in all",
  soft_budget: "Soft budget",
  postpaid_limit: "Owed beyond credit",
};

export function kindWords(use: LimitUse): string {
  return KINDS[use.kind];
}

export const LEVELS: Record<Level["level"], string> = {
  tenant: "account",
  member: "member",
  key: "API key",
  adapter: "adapter",
};

export function amountWords(use: LimitUse, value: string): string {
  return use.unit === "money" ? formatMoney(value) : formatCompact(Number(value));
}

const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** Seconds until all of a limit is there again, as a person would say it. */
export function resetWords(seconds: number | null): string {
  if (seconds === null) return "";
  if (seconds === 0) return "now";
  if (seconds < MINUTE) return `in ${seconds} s`;
  if (seconds < HOUR) return `in ${Math.ceil(seconds / MINUTE)} min`;
  if (seconds < DAY) return `in ${Math.ceil(seconds / HOUR)} h`;
  return `in ${Math.ceil(seconds / DAY)} days`;
}

/** Of the limit, in percent: what is used, and what running requests have reserved. */
export function shares(use: LimitUse): { used: number; reserved: number } {
  const limit = Number(use.limit);
  // A budget of nothing is used up; who may owe nothing has used nothing while credit lasts.
  if (limit === 0) return { used: use.kind === "postpaid_limit" ? 0 : 100, reserved: 0 };
  const used = Math.min(100, (100 * Number(use.used)) / limit);
  return { used, reserved: Math.min(100 - used, (100 * Number(use.reserved)) / limit) };
}
