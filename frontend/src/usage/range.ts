import dayjs from "dayjs";
import utc from "dayjs/plugin/utc";
import { dateFormat } from "../shared/locale";
import { wallClock } from "./zone";

dayjs.extend(utc);

export type Preset = "24h" | "7d" | "30d" | "month" | "last-month" | "year" | "custom";
export type Step = "hour" | "day" | "month";

/** Half-open, as times on the wall in `tz` ("2026-03-01T00:00"): the server knows when that is. */
export interface Range {
  from: string;
  to: string;
  tz: string;
  step: Step;
}

export const PRESETS: { value: Preset; label: string }[] = [
  { value: "24h", label: "Last 24 hours" },
  { value: "7d", label: "Last 7 days" },
  { value: "30d", label: "Last 30 days" },
  { value: "month", label: "This month" },
  { value: "last-month", label: "Last month" },
  { value: "year", label: "Last 12 months" },
  { value: "custom", label: "Choose days" },
];

const HOURLY_UP_TO_HOURS = 72;
const DAILY_UP_TO_HOURS = 100 * 24;
const WALL = "YYYY-MM-DDTHH:mm";

/** Wall times are counted as if they were UTC: no clock changes among them, and none is asked for. */
const wall = (text: string) => dayjs.utc(text);

function stepOf(from: dayjs.Dayjs, to: dayjs.Dayjs): Step {
  const hours = to.diff(from, "hour");
  if (hours <= HOURLY_UP_TO_HOURS) return "hour";
  return hours <= DAILY_UP_TO_HOURS ? "day" : "month";
}

function rangeOf(from: dayjs.Dayjs, to: dayjs.Dayjs, tz: string): Range {
  return { from: from.format(WALL), to: to.format(WALL), tz, step: stepOf(from, to) };
}

/** `to` is rounded up to the next hour, so that a range stays the same while a page is looked at. */
export function presetRange(preset: Exclude<Preset, "custom">, now: Date, tz: string): Range {
  const to = wall(wallClock(now, tz)).startOf("hour").add(1, "hour");
  const today = to.subtract(1, "hour").startOf("day");
  const month = today.startOf("month");
  switch (preset) {
    case "24h":
      return rangeOf(to.subtract(24, "hour"), to, tz);
    case "7d":
      return rangeOf(today.subtract(6, "day"), to, tz);
    case "30d":
      return rangeOf(today.subtract(29, "day"), to, tz);
    case "month":
      return rangeOf(month, to, tz);
    case "last-month":
      return rangeOf(month.subtract(1, "month"), month, tz);
    case "year":
      return rangeOf(month.subtract(11, "month"), to, tz);
  }
}

/** Whole days, both ends included in what the user chose ("2026-03-01"). */
export function customRange(first: string, last: string, tz: string): Range {
  return rangeOf(wall(first), wall(last).add(1, "day"), tz);
}

function isMonthStart(at: dayjs.Dayjs): boolean {
  return at.date() === 1 && at.hour() === 0;
}

/**
 * The span before, as long as this one. What begins with a month is beside the same days of the months before, and
 * ends with them where they are shorter.
 */
export function previousRange(range: Range): Range {
  const [from, to] = [wall(range.from), wall(range.to)];
  if (!isMonthStart(from)) {
    return { ...rangeOf(from.subtract(to.diff(from)), from, range.tz), step: range.step };
  }
  const months = Math.max(1, Math.ceil(to.diff(from, "month", true)));
  const before = from.subtract(months, "month");
  const whole = isMonthStart(to) && to.diff(from, "month", true) >= 1;
  const sameSpan = whole ? from : before.add(to.diff(from), "millisecond");
  const end = sameSpan.isAfter(from) ? from : sameSpan;
  return { ...rangeOf(before, end, range.tz), step: range.step };
}

/** The starts of all steps of a range, as wall times cut to what names the step. */
export function stepsOf({ from, to, step }: Range): string[] {
  const found: string[] = [];
  const end = wall(to);
  for (let at = wall(from).startOf(step); at.isBefore(end); at = at.add(1, step)) {
    found.push(stepKey(at.format(WALL), step));
  }
  return found;
}

const KEY_LENGTH: Record<Step, number> = { month: 7, day: 10, hour: 13 };

/** What names a step: "2026-03", "2026-03-08", "2026-03-08T14". The two 01:00 hours of an autumn share one. */
export function stepKey(at: string, step: Step): string {
  return at.slice(0, KEY_LENGTH[step]);
}

const LABELS: Record<Step, ReturnType<typeof dateFormat>> = {
  month: dateFormat({ timeZone: "UTC", year: "numeric", month: "short" }),
  day: dateFormat({ timeZone: "UTC", month: "short", day: "numeric" }),
  hour: dateFormat({
    timeZone: "UTC",
    month: "short",
    day: "numeric",
    hour: "numeric",
    minute: "2-digit",
  }),
};

export function stepLabel(key: string, step: Step): string {
  return LABELS[step]().format(wall(step === "hour" ? `${key}:00` : key).toDate());
}

/** The chart asks for the label of a tooltip that points at nothing yet, too. */
export function tooltipLabel(at: unknown, step: Step): string {
  return typeof at === "string" && at ? stepLabel(at, step) : "";
}
