// @vitest-environment node
import { describe, expect, it } from "vitest";
import { customRange, presetRange } from "./range";
import { chartRows, seriesOf } from "./series";

const NOW = new Date("2026-03-08T14:25:10Z");

describe("ranges", () => {
  it("are half-open UTC instants", () => {
    expect(presetRange("24h", NOW)).toEqual({
      from: "2026-03-07T15:00:00.000Z",
      to: "2026-03-08T15:00:00.000Z",
      step: "hour",
    });
    expect(presetRange("7d", NOW)).toMatchObject({ from: "2026-03-02T00:00:00.000Z", step: "day" });
    expect(presetRange("month", NOW)).toMatchObject({ from: "2026-03-01T00:00:00.000Z" });
  });

  it("include the last chosen day", () => {
    expect(customRange("2026-03-01", "2026-03-02")).toEqual({
      from: "2026-03-01T00:00:00.000Z",
      to: "2026-03-03T00:00:00.000Z",
      step: "hour",
    });
  });
});

describe("chartRows", () => {
  const point = (at: string, group: string, amount: string) => ({
    at,
    group,
    label: group.toUpperCase(),
    requests: 1,
    tokens: 2,
    amount,
    cost: "0",
  });

  it("has a row for every step, also the empty ones", () => {
    const points = [
      point("2026-03-01T00:00:00Z", "a", "0.5"),
      point("2026-03-01T00:00:00Z", "b", "0.25"),
      point("2026-03-03T00:00:00Z", "a", "2"),
    ];
    const range = {
      from: "2026-03-01T00:00:00Z",
      to: "2026-03-04T00:00:00Z",
      step: "day" as const,
    };
    expect(chartRows(points, range)).toEqual([
      { at: "2026-03-01T00:00:00.000Z", a: 0.5, b: 0.25 },
      { at: "2026-03-02T00:00:00.000Z", a: 0, b: 0 },
      { at: "2026-03-03T00:00:00.000Z", a: 2, b: 0 },
    ]);
    expect(seriesOf(points).map(({ label }) => label)).toEqual(["A", "B"]);
  });
});
