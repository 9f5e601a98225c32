import { useMemo } from "react";
import { useSearchParams } from "react-router";
import type { Grouping } from "./queries";
import { customRange, PRESETS, type Preset, presetRange, type Range } from "./range";

const DAY = /^\d{4}-\d{2}-\d{2}$/;

export interface UsageView {
  preset: Preset;
  days: [string | null, string | null];
  range: Range;
  grouping: Grouping;
  change: (values: Partial<Record<"range" | "by" | "first" | "last", string>>) => void;
}

function presetOf(text: string | null): Preset {
  return PRESETS.find(({ value }) => value === text)?.value ?? "7d";
}

/** What the page shows lives in its address, so that it can be shared and reloaded. */
export function useUsageView(): UsageView {
  const [params, setParams] = useSearchParams();
  const preset = presetOf(params.get("range"));
  const first = params.get("first");
  const last = params.get("last");
  const range = useMemo(() => {
    if (preset !== "custom") return presetRange(preset, new Date());
    const chosen = first && last && DAY.test(first) && DAY.test(last) && first <= last;
    return chosen ? customRange(first, last) : presetRange("7d", new Date());
  }, [preset, first, last]);
  return {
    preset,
    days: [first, last],
    range,
    grouping: params.get("by") === "key" ? "key" : "adapter",
    change: (values) =>
      setParams(
        (old) => {
          for (const [name, value] of Object.entries(values)) old.set(name, value);
          return old;
        },
        { replace: true },
      ),
  };
}
