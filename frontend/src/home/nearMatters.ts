import type { NearLimit } from "../api/types";
import { formatMoney } from "../shared/money";
import { formatCompact } from "../shared/numbers";
import { formatAgo } from "../shared/time";
import type { Matter } from "./attention";

/** The others are on the page of limits. */
const SHOWN = 6;

/** Of limits that are nearly used up, in the order in which they came. */
export function nearMatters(near: NearLimit[], now: number): Matter[] {
  const shown = near.slice(0, SHOWN).map((limit) => matterOf(limit, now));
  if (near.length <= SHOWN) return shown;
  return [...shown, { text: "Other limits are near their end, too.", to: "/limits" }];
}

function matterOf(limit: NearLimit, now: number): Matter {
  const to = placeOf(limit);
  const who = nameOf(limit);
  const all = limitWords(limit);
  if (limit.kind === "soft_budget") return { text: `${who} has reached ${all}.`, to };
  if (limit.left !== "0") {
    return { text: `${who} has ${amount(limit, limit.left)} left of ${all}.`, to };
  }
  // Once credit is used up something is owed, which may be fine.
  if (limit.kind === "credit" && limit.limit !== "0") {
    return { text: `${who} has used up ${all}.`, to };
  }
  return { text: `${usedUp(limit, who, all)}${refused(limit, now)}`, to, isUrgent: true };
}

function placeOf({ kind, level, label }: NearLimit): string {
  if (kind === "credit" || kind === "postpaid_limit") return "/billing";
  return level === "tenant" ? "/limits" : `/limits?q=${encodeURIComponent(label)}`;
}

function nameOf({ level, label }: NearLimit): string {
  if (level === "tenant") return "The account";
  if (level === "member") return label;
  return level === "key" ? `The API key ${label}` : `The adapter ${label}`;
}

function amount({ unit }: NearLimit, value: string): string {
  return unit === "tokens" ? formatCompact(Number(value)) : formatMoney(value);
}

function limitWords(limit: NearLimit): string {
  const all = amount(limit, limit.limit);
  switch (limit.kind) {
    case "tokens_per_day":
      return `today's ${all} tokens`;
    case "tokens_per_month":
      return `this month's ${all} tokens`;
    case "monthly_budget":
      return `this month's budget of ${all}`;
    case "total_budget":
      return `the budget of ${all}`;
    case "soft_budget":
      return `the soft budget of ${all}`;
    case "postpaid_limit":
      return `the ${all} that may be owed`;
    case "credit":
      return `the credit of ${all}`;
  }
}

function usedUp({ kind }: NearLimit, who: string, all: string): string {
  if (kind === "credit") return `${who} has no credit, and nothing may be owed`;
  return `${who} has used up ${all}`;
}

function refused({ resets_in: seconds }: NearLimit, now: number): string {
  if (seconds === null) return ": requests are refused.";
  const again = formatAgo(new Date(now + seconds * 1000).toISOString(), now);
  return `: requests are refused. All of it is there again ${again}.`;
}
