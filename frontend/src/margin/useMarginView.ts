import { useMemo } from "react";
import { useUrlState } from "../shared/useUrlState";
import { PRESETS, presetRange } from "../usage/range";
import { isZone, viewerZone } from "../usage/zone";
import { GROUPINGS, type MarginQuery } from "./queries";

const NAMES = ["range", "by", "tenant", "tz"] as const;

/** Ranges that need no days chosen. */
export const RANGES = PRESETS.flatMap(({ value, label }) =>
  value === "custom" ? [] : [{ value, label }],
);

/** What the page shows lives in its address. */
export function useMarginView() {
  const [values, change] = useUrlState(NAMES);
  const preset = RANGES.find(({ value }) => value === values.range)?.value ?? "month";
  const grouping = GROUPINGS.find(({ value }) => value === values.by)?.value ?? "tenant";
  const tz = values.tz && isZone(values.tz) ? values.tz : viewerZone();
  const range = useMemo(() => presetRange(preset, new Date(), tz), [preset, tz]);
  const query: MarginQuery = {
    from: range.from,
    to: range.to,
    tz,
    group_by: grouping,
    ...(values.tenant ? { tenant_id: values.tenant } : {}),
  };
  return { preset, grouping, query, change };
}

export type MarginView = ReturnType<typeof useMarginView>;
