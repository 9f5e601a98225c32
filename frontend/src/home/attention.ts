import type { Adapter, ApiKey, NearLimit } from "../api/types";
import type { Credit } from "../billing/earnings";
import { formatMoney } from "../shared/money";
import { formatAgo } from "../shared/time";
import { nearMatters } from "./nearMatters";

export interface Matter {
  text: string;
  /** Where it is mended. */
  to: string;
  /** Something is refused already. */
  isUrgent?: boolean;
}

const WEEK_MS = 7 * 86_400_000;

/** What a person of this tenant should look at, worst first. */
export function mattersOf(
  parts: { near?: NearLimit[]; credits?: Credit[]; adapters?: Adapter[]; keys?: ApiKey[] },
  now = Date.now(),
): Matter[] {
  return [
    ...nearMatters(parts.near ?? [], now),
    ...(parts.credits ?? []).flatMap((credit) => creditMatters(credit, now)),
    ...(parts.adapters ?? []).flatMap(adapterMatters),
    ...(parts.keys ?? []).flatMap((key) => keyMatters(key, now)),
  ];
}

function endsSoon(iso: string | null, now: number): iso is string {
  const left = iso ? new Date(iso).getTime() - now : 0;
  return left > 0 && left <= WEEK_MS;
}

function creditMatters({ remaining, expires_at: end }: Credit, now: number): Matter[] {
  if (!endsSoon(end, now) || /^[0.]*$/.test(remaining)) return [];
  const text = `${formatMoney(remaining)} of credit, less this month's use, expires ${formatAgo(end, now)}.`;
  return [{ text, to: "/billing" }];
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
      to: `/adapters?q=${encodeURIComponent(adapter.name)}`,
    },
  ];
}

function keyMatters(key: ApiKey, now: number): Matter[] {
  if (key.revoked_at || !endsSoon(key.expires_at, now)) return [];
  const text = `The API key ${key.name} expires ${formatAgo(key.expires_at, now)}.`;
  return [{ text, to: `/keys?q=${encodeURIComponent(key.name)}` }];
}
