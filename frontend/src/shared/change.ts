import { formatChange } from "./numbers";

/** "+12%", "-3%", "as before"; null where there is nothing to compare with. */
export function changeWords(current: number, previous: number): string | null {
  if (previous === 0) return null;
  const percents = Math.round((100 * (current - previous)) / previous);
  return percents === 0 ? "as before" : formatChange(percents / 100);
}
