import type { Adapter, Split, Version } from "../api/types";
import { formatShare } from "../shared/numbers";

export function newestFirst(adapter: Adapter): Version[] {
  return adapter.versions.toSorted((a, b) => b.number - a.number);
}

export function readyVersions(adapter: Adapter): Version[] {
  return newestFirst(adapter).filter(({ state }) => state === "ready");
}

function shareOf(splits: Split[], number: number): number {
  const total = splits.reduce((sum, { weight }) => sum + weight, 0);
  const weight = splits.find(({ version }) => version === number)?.weight ?? 0;
  return total === 0 ? 0 : Math.round((100 * weight) / total);
}

/** Percent of the alias's traffic that a version gets; 0 for none. */
export function trafficShare(adapter: Adapter, number: number): number {
  return shareOf(adapter.alias?.splits ?? [], number);
}

/** "v2", or "v1 90% · v2 10%". */
export function splitsText(splits: Split[]): string {
  if (splits.length === 1) return `v${splits[0]?.version}`;
  return splits
    .map(({ version }) => `v${version} ${formatShare(shareOf(splits, version) / 100)}`)
    .join(" · ");
}

/** As `splitsText`, or null while nothing is served. */
export function servingText(adapter: Adapter): string | null {
  const splits = adapter.alias?.splits ?? [];
  return splits.length === 0 ? null : splitsText(splits);
}

/** An upload that was begun and has not been closed. */
export function isUnfinished({ state, source }: Version): boolean {
  return state === "uploading" && source === null;
}

/** What of a version's files is there, 0 to 1; null while their sizes are not known. */
export function receivedShare({ files }: Version): number | null {
  const size = files.reduce((sum, file) => sum + file.size, 0);
  const received = files.reduce((sum, file) => sum + file.received_bytes, 0);
  return size === 0 ? null : received / size;
}
