import { chartValue } from "../shared/money";

const DAY_MS = 86_400_000;

/** What a month (UTC) comes to if it goes on as it began; null on its first day, which says little. */
export function forecastOf(spent: string, now: Date): number | null {
  const [year, month] = [now.getUTCFullYear(), now.getUTCMonth()];
  const [start, end] = [Date.UTC(year, month), Date.UTC(year, month + 1)];
  const passed = now.getTime() - start;
  return passed < DAY_MS ? null : (chartValue(spent) * (end - start)) / passed;
}
