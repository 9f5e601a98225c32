import type { components } from "../api/schema";
import type { Level, Limits } from "../api/types";
import { optionalAmountProblem } from "../shared/decimalInput";

type Count = number | "";
export type LimitChanges = components["schemas"]["TenantLimitsInputRequest"];
/** What all levels have, and what an account has besides. */
export type Settable = Pick<Limits, CountName | "monthly_budget" | "total_budget" | "soft_budget"> &
  Partial<Pick<Limits, "postpaid_limit" | "tenant_weight">>;

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
  postpaid_limit: string;
  tenant_weight: Count;
}

export const LIMIT_PROBLEMS = {
  budget: optionalAmountProblem,
  soft_budget: optionalAmountProblem,
  postpaid_limit: optionalAmountProblem,
  tenant_weight: (weight: Count) => (weight === "" ? "Between 0.01 and 100; 1 is the usual" : null),
};

const USUAL_WEIGHT = 1;

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
    postpaid_limit: limits.postpaid_limit ?? "",
    tenant_weight: Number(limits.tenant_weight ?? USUAL_WEIGHT),
  };
}

/** An empty field takes the limit away. Of the two kinds of budget the chosen one replaces the other. */
export function changesOf(values: LimitValues, level: Level["level"]): LimitChanges {
  const budget = values.budget.trim() || null;
  return {
    requests_per_minute: countOf(values.requests_per_minute),
    tokens_per_minute: countOf(values.tokens_per_minute),
    tokens_per_day: countOf(values.tokens_per_day),
    tokens_per_month: countOf(values.tokens_per_month),
    concurrency: countOf(values.concurrency),
    ...(values.period === "month" ? { monthly_budget: budget } : { total_budget: budget }),
    soft_budget: values.soft_budget.trim() || null,
    ...(level === "tenant" ? accountChanges(values) : {}),
  };
}

function accountChanges({ postpaid_limit, tenant_weight }: LimitValues): LimitChanges {
  return { postpaid_limit: postpaid_limit.trim() || null, tenant_weight: String(tenant_weight) };
}

function countOf(value: Count): number | null {
  return value === "" ? null : value;
}
