import type { Adapter, ApiKey, Balance } from "../api/types";
import { chartValue, formatMoney } from "../shared/money";
import { formatAgo } from "../shared/time";

export interface Matter {
  text: string;
  to: string;
}

const WEEK_MS = 7 * 86_400_000;
const BUDGET_SHARE = 0.8;

/** What a person of this tenant should look at, worst first. */
export function mattersOf(
  parts: { balance?: Balance; adapters?: Adapter[]; keys?: ApiKey[] },
  now = Date.now(),
): Matter[] {
  return [
    ...budgetMatters(parts.balance),
    ...(parts.adapters ?? []).flatMap(adapterMatters),
    ...(parts.keys ?? []).flatMap((key) => keyMatters(key, now)),
  ];
}

function budgetMatters(balance?: Balance): Matter[] {
  if (!balance?.budget) return [];
  const { spent_this_period: spent, budget } = balance;
  if (chartValue(spent) < BUDGET_SHARE * chartValue(budget)) return [];
  return [
    {
      text: `${formatMoney(spent)} of the budget of ${formatMoney(budget)} is spent.`,
      to: "/billing",
    },
  ];
}

function adapterMatters(adapter: Adapter): Matter[] {
  const newest = adapter.versions.reduce<Adapter["versions"][number] | null>(
    (best, version) => (!best || version.number > best.number ? version : best),
    null,
  );
  if (newest?.state !== "rejected") return [];
  return [
    {
      text: `${adapter.name} version ${newest.number} was rejected by the check.`,
      to: "/adapters",
    },
  ];
}

function keyMatters(key: ApiKey, now: number): Matter[] {
  if (key.revoked_at || !key.expires_at) return [];
  const left = new Date(key.expires_at).getTime() - now;
  if (left <= 0 || left > WEEK_MS) return [];
  return [{ text: `The key ${key.name} expires ${formatAgo(key.expires_at, now)}.`, to: "/keys" }];
}
