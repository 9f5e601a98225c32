import type { Margin } from "../api/types";

/** Estimates of amounts, as floats: they say how large a thing is, they are in no book. */
export interface Savings {
  idle: number;
  /** Twice the sequences in each decode step, while reading the weights is what bounds it: at most half. */
  fullerBatch: number;
  /** Ten more of a hundred prompt tokens from the cache. */
  warmerCache: number;
}

const MORE_CACHED = 0.1;

export function savingsOf({ total, device }: Margin): Savings {
  const computed = total.prompt_tokens - total.cached_tokens;
  const perComputedToken = computed > 0 ? Number(total.prefill_cost) / computed : 0;
  const moreCached = Math.min(computed, MORE_CACHED * total.prompt_tokens);
  return {
    idle: Number(device.idle_cost),
    fullerBatch: Number(total.decode_cost) / 2,
    warmerCache: perComputedToken * moreCached,
  };
}
