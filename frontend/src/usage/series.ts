import dayjs from "dayjs";
import utc from "dayjs/plugin/utc";
import type { UsagePoint } from "../api/types";
import { chartValue } from "../shared/money";
import type { Range } from "./range";

dayjs.extend(utc);

export interface Series {
  group: string;
  label: string;
  color: string;
}

export type ChartRow = { at: string } & Record<string, number | string>;

/** Distinct in hue and lightness, readable on both grounds. */
const COLORS = [
  "veneer.6",
  "indigo.5",
  "orange.5",
  "grape.5",
  "cyan.6",
  "yellow.6",
  "pink.5",
  "lime.7",
  "blue.6",
  "red.5",
];

export function seriesOf(points: UsagePoint[]): Series[] {
  const labels = new Map<string, string>();
  for (const { group, label } of points) labels.set(group, label);
  return [...labels].map(([group, label], index) => ({
    group,
    label,
    color: COLORS[index % COLORS.length] ?? "gray.6",
  }));
}

/** One row per step of the range, also where nothing was used: a gap in time must show as one. */
export function chartRows(points: UsagePoint[], { from, to, step }: Range): ChartRow[] {
  const rows = new Map<number, ChartRow>();
  const groups = seriesOf(points).map(({ group }) => [group, 0] as const);
  const end = dayjs.utc(to);
  for (let at = dayjs.utc(from).startOf(step); at.isBefore(end); at = at.add(1, step)) {
    rows.set(at.valueOf(), { ...Object.fromEntries(groups), at: at.toISOString() });
  }
  for (const point of points) {
    const row = rows.get(dayjs.utc(point.at).valueOf());
    if (row) row[point.group] = chartValue(point.amount);
  }
  return [...rows.values()];
}

export function stepLabel(at: string, step: Range["step"]): string {
  return dayjs.utc(at).format(step === "hour" ? "D MMM HH:mm" : "D MMM");
}
