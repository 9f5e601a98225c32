import { useMemo } from "react";
import type { UsageGroup } from "../api/types";
import { useUsage } from "../usage/queries";
import { presetRange } from "../usage/range";
import { viewerZone } from "../usage/zone";

/** By key id, what each has used this month; undefined while it is not known. */
export function useKeySpend(): Map<string, UsageGroup> | undefined {
  const month = useMemo(() => presetRange("month", new Date(), viewerZone()), []);
  const usage = useUsage(month, "key");
  return useMemo(
    () => usage.data && new Map(usage.data.data.map((row) => [row.group, row])),
    [usage.data],
  );
}
