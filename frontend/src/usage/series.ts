import type { UsageGroup, UsagePoint } from "../api/types";
import { chartValue } from "../shared/money";
import { type Range, stepKey, stepsOf } from "./range";

export interface Series {
  group: string;
  label: string;
  color: string;
}

export type ChartRow = { at: string } & Record<string, number | string | null>;

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
];
const REST_COLOR = "gray.5";
/** No group's own id looks so. */
const REST = "(rest)";

/** The dearest groups, each with a colour of its own; the others are one. */
export function seriesOf(points: UsagePoint[]): Series[] {
  const labels = new Map<string, string>();
  const amounts = new Map<string, number>();
  for (const { group, label, amount } of points) {
    labels.set(group, label);
    amounts.set(group, (amounts.get(group) ?? 0) + chartValue(amount));
  }
  const dearest = [...labels.keys()].sort((a, b) => (amounts.get(b) ?? 0) - (amounts.get(a) ?? 0));
  const fits = dearest.length <= COLORS.length + 1;
  const named = fits ? dearest : dearest.slice(0, COLORS.length);
  const series = named.map((group, index) => ({
    group,
    label: labels.get(group) ?? group,
    color: COLORS[index] ?? REST_COLOR,
  }));
  const rest = { group: REST, label: `${dearest.length - named.length} others`, color: REST_COLOR };
  return fits ? series : [...series, rest];
}

/** One row per step of the range, also where nothing was used: a gap in time must show as one. */
export function chartRows(points: UsagePoint[], range: Range): ChartRow[] {
  const groups = seriesOf(points).map(({ group }) => group);
  const empty = Object.fromEntries(groups.map((group) => [group, 0]));
  const rows = new Map<string, ChartRow>(
    stepsOf(range).map((at) => [at, { ...empty, at }] as const),
  );
  for (const point of points) {
    const row = rows.get(stepKey(point.at, range.step));
    const group = groups.includes(point.group) ? point.group : REST;
    if (row) row[group] = Number(row[group]) + chartValue(point.amount);
  }
  return [...rows.values()];
}

/** Price and cost of a million tokens at each step; null where there were none, so that the line breaks. */
export function unitCostRows(steps: UsageGroup[], range: Range): ChartRow[] {
  const found = new Map(steps.map((step) => [stepKey(step.group, range.step), step]));
  const value = (text: string | null | undefined) => (text ? chartValue(text) : null);
  return stepsOf(range).map((at) => ({
    at,
    price: value(found.get(at)?.amount_per_1m),
    cost: value(found.get(at)?.cost_per_1m),
  }));
}
