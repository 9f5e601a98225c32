import type { ByteRange } from "../../api/types";

export const PART_BYTES = 4 * 1024 * 1024;

export interface Part {
  start: number;
  end: number;
}

/** Bytes covered by half-open ranges, which may touch or overlap. */
export function coveredBytes(ranges: ByteRange[]): number {
  return mergeRanges(ranges).reduce((sum, { start, end }) => sum + end - start, 0);
}

function mergeRanges(ranges: ByteRange[]): Part[] {
  const merged: Part[] = [];
  const parts = ranges.map(([start = 0, end = 0]) => ({ start, end }));
  for (const { start, end } of parts.sort((a, b) => a.start - b.start)) {
    const last = merged.at(-1);
    if (last && start <= last.end) last.end = Math.max(last.end, end);
    else merged.push({ start, end });
  }
  return merged;
}

/** The half-open gaps that the server does not hold yet. */
export function missingRanges(size: number, received: ByteRange[]): Part[] {
  const gaps: Part[] = [];
  let at = 0;
  for (const { start, end } of mergeRanges(received)) {
    if (start > at) gaps.push({ start: at, end: Math.min(start, size) });
    at = Math.max(at, end);
  }
  if (at < size) gaps.push({ start: at, end: size });
  return gaps;
}

/** The gaps cut into parts of at most `partBytes`, in order. */
export function planParts(size: number, received: ByteRange[], partBytes = PART_BYTES): Part[] {
  const parts: Part[] = [];
  for (const { start, end } of missingRanges(size, received)) {
    for (let at = start; at < end; at += partBytes) {
      parts.push({ start: at, end: Math.min(at + partBytes, end) });
    }
  }
  return parts;
}
