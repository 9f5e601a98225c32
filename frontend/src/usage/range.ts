import dayjs from "dayjs";
import utc from "dayjs/plugin/utc";

dayjs.extend(utc);

export type Preset = "24h" | "7d" | "30d" | "month" | "custom";

/** Half-open, as ISO instants. Days are UTC days, because the books close by UTC. */
export interface Range {
  from: string;
  to: string;
  step: "hour" | "day";
}

export const PRESETS: { value: Preset; label: string }[] = [
  { value: "24h", label: "Last 24 hours" },
  { value: "7d", label: "Last 7 days" },
  { value: "30d", label: "Last 30 days" },
  { value: "month", label: "This month" },
  { value: "custom", label: "Choose days" },
];

const HOURLY_UP_TO_HOURS = 72;

function rangeOf(from: dayjs.Dayjs, to: dayjs.Dayjs): Range {
  const step = to.diff(from, "hour") <= HOURLY_UP_TO_HOURS ? "hour" : "day";
  return { from: from.toISOString(), to: to.toISOString(), step };
}

/** `to` is rounded up to the next hour, so that a range stays the same while a page is looked at. */
export function presetRange(preset: Exclude<Preset, "custom">, now: Date): Range {
  const to = dayjs.utc(now).startOf("hour").add(1, "hour");
  const today = dayjs.utc(now).startOf("day");
  switch (preset) {
    case "24h":
      return rangeOf(to.subtract(24, "hour"), to);
    case "7d":
      return rangeOf(today.subtract(6, "day"), to);
    case "30d":
      return rangeOf(today.subtract(29, "day"), to);
    case "month":
      return rangeOf(today.startOf("month"), to);
  }
}

/** Whole UTC days, both ends included in what the user chose ("2026-03-01"). */
export function customRange(first: string, last: string): Range {
  return rangeOf(dayjs.utc(first), dayjs.utc(last).add(1, "day"));
}
