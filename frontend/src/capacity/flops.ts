const PREFIXES = ["", "k", "M", "G", "T", "P"];

/** "6.93 GFLOP/s". */
export function formatFlops(value: number): string {
  const step = Math.min(Math.max(Math.floor(Math.log10(value) / 3), 0), PREFIXES.length - 1);
  return `${Number((value / 1000 ** step).toPrecision(3))} ${PREFIXES[step]}FLOP/s`;
}
