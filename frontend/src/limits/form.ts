import type { components } from "../api/schema";
import type { Limits } from "../api/types";
import { optionalAmountProblem } from "../shared/decimalInput";

type Count = number | "";
export type LimitChanges = components["schemas"]["LimitsInputRequest"];
/** What a level's limits and a tenant's have in common. */
export type Settable = Pick<Limits, CountName | "monthly_budget" | "total_budget" | "soft_budget">;

export const COUNTS = [
  { name: "requests_per_minute", label: "Requests per minute" },
  { name: "tokens_per_minute", label: "Tokens per minute" },
  { name: "tokens_per_day", label: "Tokens per day (UTC)" },
  { name: "tokens_per_month", label: "Tokens per month (UTC)" },
  { name: "concurrency", label: "Requests at the same time" },
] as const;
type CountName = (typeof COUNTS)[number]["name"];

export interface LimitValues extends Record<CountName, Count> {
  budget: string;
  period: "month" | "total";
  soft_budget: string;
}

export const NO_LIMITS: Settable = {
  requests_per_minute: null,
  tokens_per_minute: null,
  tokens_per_day: null,
  tokens_per_month: null,
  concurrency: null,
  monthly_budget: null,
  total_budget: null,
  soft_budget: null,
};

export const LIMIT_PROBLEMS = {
  budget: optionalAmountProblem,
  soft_budget: optionalAmountProblem,
};

export function valuesOf(limits: Settable): LimitValues {
  return {
    requests_per_minute: limits.requests_per_minute ?? "",
    tokens_per_minute: limits.tokens_per_minute ?? "",
    tokens_per_day: limits.tokens_per_day ?? "",
    tokens_per_month: limits.tokens_per_month ?? "",
    concurrency: limits.concurrency ?? "",
    budget: limits.total_budget ?? limits.monthly_budget ?? "",
    period: limits.total_budget === null ? "month" : "total",
    soft_budget: limits.soft_budget ?? "",
  };
}

/** An empty field takes the limit away. Of the two kinds of budget the chosen one replaces the other. */
export function changesOf(values: LimitValues): LimitChanges {
  const budget = values.budget.trim() || null;
  return {
    requests_per_minute: countOf(values.requests_per_minute),
    tokens_per_minute: countOf(values.tokens_per_minute),
    tokens_per_day: countOf(values.tokens_per_day),
    tokens_per_month: countOf(values.tokens_per_month),
    concurrency: countOf(values.concurrency),
    ...(values.period === "month" ? { monthly_budget: budget } : { total_budget: budget }),
    soft_budget: values.soft_budget.trim() || null,
  };
}

function countOf(value: Count): number | null {
  return value === "" ? null : value;
}
