import { useMemo } from "react";
import { useUrlState } from "../shared/useUrlState";
import type { Grouping, Only, Outcome } from "./queries";
import {
  customRange,
  PRESETS,
  type Preset,
  presetRange,
  previousRange,
  type Range,
  type Step,
} from "./range";
import { isZone, viewerZone } from "./zone";

const DAY = /^\d{4}-\d{2}-\d{2}$/;
const NAMES = [
  "range",
  "first",
  "last",
  "by",
  "step",
  "tz",
  "compare",
  "only",
  "outcome",
  "generation",
] as const;
type Name = (typeof NAMES)[number];

export const GROUPINGS: { value: Grouping; label: string }[] = [
  { value: "adapter", label: "Adapter" },
  { value: "key", label: "Key" },
  { value: "member", label: "Member" },
  { value: "model", label: "Model version" },
];
export const STEPS: { value: Step; label: string }[] = [
  { value: "hour", label: "Hour" },
  { value: "day", label: "Day" },
  { value: "month", label: "Month" },
];
const OUTCOMES: Outcome[] = ["any", "completed", "cancelled", "failed"];

export interface UsageView {
  preset: Preset;
  days: [string | null, string | null];
  range: Range;
  /** null: nothing is compared. */
  previous: Range | null;
  grouping: Grouping;
  only: Only;
  outcome: Outcome;
  /** The generation that is looked at; empty: none. */
  generation: string;
  change: (values: Partial<Record<Name, string>>) => void;
}

function chosen<T extends string>(options: readonly T[], text: string, otherwise: T): T {
  return options.find((value) => value === text) ?? otherwise;
}

function rangeOf(values: Record<Name, string>): { preset: Preset; range: Range } {
  const tz = values.tz && isZone(values.tz) ? values.tz : viewerZone();
  const presets = PRESETS.map(({ value }) => value);
  const preset = chosen(presets, values.range, "7d");
  const { first, last } = values;
  const hasDays = DAY.test(first) && DAY.test(last) && first <= last;
  const now = new Date();
  if (preset !== "custom") return { preset, range: presetRange(preset, now, tz) };
  return { preset, range: hasDays ? customRange(first, last, tz) : presetRange("7d", now, tz) };
}

/** What the page shows lives in its address, so that it can be shared and reloaded. */
export function useUsageView(): UsageView {
  const [values, change] = useUrlState(NAMES);
  const { preset, range } = useMemo(() => {
    const found = rangeOf(values);
    const steps = STEPS.map(({ value }) => value);
    return {
      ...found,
      range: { ...found.range, step: chosen(steps, values.step, found.range.step) },
    };
  }, [values]);
  const groupings = GROUPINGS.map(({ value }) => value);
  const grouping = chosen(groupings, values.by, "adapter");
  return {
    preset,
    days: [values.first || null, values.last || null],
    range,
    previous: values.compare ? previousRange(range) : null,
    grouping,
    only: values.only ? { [grouping]: values.only } : {},
    outcome: chosen(OUTCOMES, values.outcome, "any"),
    generation: values.generation,
    change,
  };
}
