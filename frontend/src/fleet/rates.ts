import type { Fleet, Replica } from "../api/types";

/** One look at a replica that answered. */
export interface Look {
  at: number;
  replica: Replica & { totals: NonNullable<Replica["totals"]>; load: NonNullable<Replica["load"]> };
}

/** What happened between two looks, per second, and per step. null: there was no step. */
export interface Rates {
  computedPerSecond: number;
  generatedPerSecond: number;
  /** Of the time, 0 to 1. */
  busy: number;
  tokensPerStep: number | null;
  sequencesPerStep: number | null;
  secondsPerStep: number | null;
}

export function lookAt(fleet: Fleet, name: string): Look | null {
  const replica = fleet.replicas.find((each) => each.name === name);
  if (!replica?.totals || !replica.load) return null;
  return {
    at: Date.parse(fleet.at) / 1000,
    replica: { ...replica, totals: replica.totals, load: replica.load },
  };
}

/** null where nothing can be told: no time between them, or the engine started anew. */
export function ratesBetween(before: Look, after: Look): Rates | null {
  const seconds = after.at - before.at;
  if (seconds <= 0 || before.replica.boot_id !== after.replica.boot_id) return null;
  const [a, b] = [before.replica.totals, after.replica.totals];
  const steps = b.steps - a.steps;
  const deviceSeconds = b.step_seconds - a.step_seconds;
  const perStep = (amount: number) => (steps > 0 ? amount / steps : null);
  return {
    computedPerSecond: (b.batch_tokens - a.batch_tokens) / seconds,
    generatedPerSecond: (b.generated_tokens - a.generated_tokens) / seconds,
    busy: Math.min(1, deviceSeconds / seconds),
    tokensPerStep: perStep(b.batch_tokens - a.batch_tokens),
    sequencesPerStep: perStep(b.batch_sequences - a.batch_sequences),
    secondsPerStep: perStep(deviceSeconds),
  };
}

export const WINDOW_SECONDS = 5;

const LEAST_SECONDS = 0.9;

/** As of the last few seconds; null while too little has been seen. */
export function newestRates(looks: Look[]): Rates | null {
  const newest = looks.at(-1);
  if (!newest) return null;
  const from = looks.find(({ at }) => at >= newest.at - WINDOW_SECONDS - 0.5);
  return from && newest.at - from.at >= LEAST_SECONDS ? ratesBetween(from, newest) : null;
}
