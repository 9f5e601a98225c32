// @vitest-environment node
import { expect, it } from "vitest";
import { aMargin, someMoney } from "../test/margin";
import { savingsOf } from "./savings";

it("estimates what idleness costs, and what a fuller batch and a warmer cache would save", () => {
  const total = someMoney({
    prompt_tokens: 1_000,
    cached_tokens: 200,
    prefill_cost: "0.8",
    decode_cost: "3",
  });
  // 800 tokens were computed for $0.80; 100 more of them would have come from the cache.
  const found = savingsOf(aMargin({ total }));
  expect(found.idle).toBeCloseTo(0.3998);
  expect(found.fullerBatch).toBeCloseTo(1.5);
  expect(found.warmerCache).toBeCloseTo(0.1);
});

it("saves no more tokens than were computed, and nothing where none were", () => {
  const nearlyAll = someMoney({ prompt_tokens: 1_000, cached_tokens: 950, prefill_cost: "0.05" });
  expect(savingsOf(aMargin({ total: nearlyAll })).warmerCache).toBeCloseTo(0.05);
  const none = someMoney({ prompt_tokens: 0, cached_tokens: 0, prefill_cost: "0" });
  expect(savingsOf(aMargin({ total: none })).warmerCache).toBe(0);
});
