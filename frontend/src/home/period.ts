import dayjs from "dayjs";
import utc from "dayjs/plugin/utc";
import type { Range } from "../usage/range";

dayjs.extend(utc);

/** This month so far, and as much of the month before: up to the same hour of the same day, or to its end. */
export function thisAndLastMonth(now: Date): { current: Range; previous: Range } {
  const to = dayjs.utc(now).startOf("hour").add(1, "hour");
  const start = dayjs.utc(now).startOf("month");
  const before = start.subtract(1, "month");
  const sameSpan = before.add(to.diff(start, "hour"), "hour");
  const end = sameSpan.isAfter(start) ? start : sameSpan;
  const range = (from: dayjs.Dayjs, until: dayjs.Dayjs): Range => ({
    from: from.toISOString(),
    to: until.toISOString(),
    step: "day",
  });
  return { current: range(start, to), previous: range(before, end) };
}

/** "+12 %", "−3 %", "as before"; null where there is nothing to compare with. */
export function changeWords(current: number, previous: number): string | null {
  if (previous === 0) return null;
  const percent = Math.round((100 * (current - previous)) / previous);
  if (percent === 0) return "as before";
  return percent > 0 ? `+${percent} %` : `−${-percent} %`;
}
