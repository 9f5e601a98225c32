import type { Adapter, Version } from "../api/types";

export function newestFirst(adapter: Adapter): Version[] {
  return adapter.versions.toSorted((a, b) => b.number - a.number);
}

export function readyVersions(adapter: Adapter): Version[] {
  return newestFirst(adapter).filter(({ state }) => state === "ready");
}

/** Percent of the alias's traffic that a version gets; 0 for none. */
export function trafficShare(adapter: Adapter, number: number): number {
  const splits = adapter.alias?.splits ?? [];
  const total = splits.reduce((sum, { weight }) => sum + weight, 0);
  const weight = splits.find(({ version }) => version === number)?.weight ?? 0;
  return total === 0 ? 0 : Math.round((100 * weight) / total);
}

/** "v2", "v1 90 % · v2 10 %", or null while nothing is served. */
export function servingText(adapter: Adapter): string | null {
  const splits = adapter.alias?.splits ?? [];
  if (splits.length === 0) return null;
  if (splits.length === 1) return `v${splits[0]?.version}`;
  return splits.map(({ version }) => `v${version} ${trafficShare(adapter, version)} %`).join(" · ");
}
