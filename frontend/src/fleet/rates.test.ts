// @vitest-environment node
import { expect, it } from "vitest";
import { aFleet } from "../test/fleet";
import { type Look, lookAt, newestRates, ratesBetween } from "./rates";

function look(second: number, totals: object = {}, boot_id = "boot-1"): Look {
  const found = lookAt(aFleet({ second, totals, boot_id }), "engine");
  if (!found) throw new Error("the sample answers");
  return found;
}

it("tells what happened between two looks", () => {
  const before = look(10, {
    steps: 100,
    step_seconds: 5,
    batch_tokens: 1_000,
    generated_tokens: 400,
  });
  const after = look(12, {
    steps: 120,
    step_seconds: 6,
    batch_tokens: 1_600,
    generated_tokens: 500,
    batch_sequences: 240,
  });
  expect(ratesBetween(before, after)).toEqual({
    computedPerSecond: 300,
    generatedPerSecond: 50,
    busy: 0.5,
    tokensPerStep: 30,
    sequencesPerStep: 12,
    secondsPerStep: 0.05,
  });
});

it("has no mean of no steps", () => {
  expect(ratesBetween(look(1), look(2))).toMatchObject({
    computedPerSecond: 0,
    busy: 0,
    tokensPerStep: null,
  });
});

it("tells nothing over a restart, nor over no time", () => {
  expect(ratesBetween(look(1), look(2, {}, "boot-2"))).toBeNull();
  expect(ratesBetween(look(1), look(1))).toBeNull();
});

it("looks back a few seconds, not to the start", () => {
  const looks = [
    look(0, { batch_tokens: 0 }),
    look(5, { batch_tokens: 0 }),
    look(10, { batch_tokens: 500 }),
  ];
  expect(newestRates(looks)?.computedPerSecond).toBe(100);
  expect(newestRates([])).toBeNull();
});

it("sees no replica that is away", () => {
  const fleet = aFleet({ second: 1 });
  const away = { ...fleet.replicas[0], load: null, totals: null };
  expect(lookAt({ ...fleet, replicas: [away as (typeof fleet.replicas)[0]] }, "engine")).toBeNull();
});
