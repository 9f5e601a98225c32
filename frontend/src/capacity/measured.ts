import type { ModelSize, Replica } from "../api/types";
import { parameters } from "./arithmetic";

export interface Measured {
  /** Mean of all steps since the engine started. */
  tokensPerStep: number;
  /** FLOP/s reached while a step ran: two per weight and token, attention left out. */
  flops: number;
  steps: number;
  device: string;
}

/** Where the running engine stands; null before its first step. */
export function measuredPoint(size: ModelSize, { totals, device }: Replica): Measured | null {
  if (!totals || totals.steps === 0 || totals.step_seconds <= 0) return null;
  const operations = 2 * parameters(size, { active: true }) * totals.batch_tokens;
  return {
    tokensPerStep: totals.batch_tokens / totals.steps,
    flops: operations / totals.step_seconds,
    steps: totals.steps,
    device: device ?? "",
  };
}
