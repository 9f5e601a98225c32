import { formatTenths } from "../../shared/numbers";

export interface Sample {
  /** Milliseconds of one clock. */
  at: number;
  sent: number;
}

const WINDOW_MS = 5_000;
const LEAST_MS = 500;

/** The last few seconds of samples, with the newest. */
export function withSample(samples: Sample[], sample: Sample): Sample[] {
  return [...samples.filter(({ at }) => sample.at - at <= WINDOW_MS), sample];
}

/** Bytes per second over the samples; null where they are too few to say. */
export function speedOf(samples: Sample[]): number | null {
  const [first, last] = [samples[0], samples.at(-1)];
  if (!first || !last || last.at - first.at < LEAST_MS || last.sent <= first.sent) return null;
  return ((last.sent - first.sent) * 1000) / (last.at - first.at);
}

/** "12 s", "3 min", "2 h" until the rest is sent. */
export function remainingWords(left: number, speed: number): string {
  const seconds = left / speed;
  if (seconds < 60) return `${Math.max(1, Math.round(seconds))} s`;
  const minutes = seconds / 60;
  return minutes < 60 ? `${Math.round(minutes)} min` : `${formatTenths(minutes / 60)} h`;
}
