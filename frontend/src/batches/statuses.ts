import type { Batch } from "../api/types";

export type BatchStatus = Batch["status"];

export const STATUSES: Record<BatchStatus, { label: string; color: string }> = {
  validating: { label: "being read", color: "blue" },
  in_progress: { label: "in progress", color: "veneer" },
  finalizing: { label: "finishing", color: "blue" },
  completed: { label: "completed", color: "gray" },
  failed: { label: "failed", color: "red" },
  expired: { label: "expired", color: "orange" },
  cancelling: { label: "being cancelled", color: "orange" },
  cancelled: { label: "cancelled", color: "gray" },
};

/** What an address says, or "" for every status. */
export function statusOf(text: string): BatchStatus | "" {
  return Object.hasOwn(STATUSES, text) ? (text as BatchStatus) : "";
}

/** From `finalizing` on it has an end, or is about to. */
export function canBeCancelled({ status }: Batch): boolean {
  return status === "validating" || status === "in_progress";
}
