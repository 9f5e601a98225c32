// @vitest-environment node
import { expect, it } from "vitest";
import { aFleet } from "../test/fleet";
import { parameters } from "./arithmetic";
import { formatFlops } from "./flops";
import { measuredPoint } from "./measured";
import worked from "./worked.json";

const size = worked[2]?.size as (typeof worked)[number]["size"];

it("is the mean step, and the operations while one ran", () => {
  const [replica] = aFleet({ totals: { steps: 100, step_seconds: 2, batch_tokens: 800 } }).replicas;
  if (!replica) throw new Error("the sample has one");
  expect(parameters(size)).toBe(134_515_008);
  expect(measuredPoint(size, replica)).toEqual({
    tokensPerStep: 8,
    flops: (2 * 134_515_008 * 800) / 2,
    steps: 100,
    device: "cpu",
  });
  expect(measuredPoint(size, { ...replica, totals: null })).toBeNull();
});

it("names operations a second as engineers do", () => {
  expect([989e12, 6.93e9, 0.5].map(formatFlops)).toEqual([
    "989 TFLOP/s",
    "6.93 GFLOP/s",
    "0.5 FLOP/s",
  ]);
});

it("is nowhere before the first step", () => {
  const [replica] = aFleet().replicas;
  if (!replica) throw new Error("the sample has one");
  expect(measuredPoint(size, replica)).toBeNull();
});
