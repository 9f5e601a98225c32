// @vitest-environment node
import { describe, expect, it, vi } from "vitest";
import type { UsageGroup } from "../api/types";
import { someNumbers } from "../test/samples";
import {
  customRange,
  presetRange,
  previousRange,
  type Range,
  stepLabel,
  stepsOf,
  tooltipLabel,
} from "./range";
import { chartRows, seriesOf, unitCostRows } from "./series";
import { isZone, wallClock } from "./zone";

const NOW = new Date("2026-03-08T14:25:10Z");

describe("ranges", () => {
  it("are half-open times on the wall of a zone", () => {
    expect(presetRange("24h", NOW, "UTC")).toEqual({
      from: "2026-03-07T15:00",
      to: "2026-03-08T15:00",
      tz: "UTC",
      step: "hour",
    });
    expect(presetRange("7d", NOW, "UTC")).toMatchObject({ from: "2026-03-02T00:00", step: "day" });
    expect(presetRange("month", NOW, "UTC")).toMatchObject({ from: "2026-03-01T00:00" });
    expect(presetRange("last-month", NOW, "UTC")).toMatchObject({
      from: "2026-02-01T00:00",
      to: "2026-03-01T00:00",
    });
    expect(presetRange("year", NOW, "UTC")).toMatchObject({
      from: "2025-04-01T00:00",
      step: "month",
    });
  });

  it("go by the date it is there", () => {
    const evening = new Date("2026-02-28T23:30:00Z");
    expect(wallClock(evening, "Asia/Kolkata")).toBe("2026-03-01T05:00:00");
    expect(presetRange("month", evening, "Asia/Kolkata")).toMatchObject({
      from: "2026-03-01T00:00",
      to: "2026-03-01T06:00",
      tz: "Asia/Kolkata",
    });
    expect([isZone("Asia/Kolkata"), isZone("Mars/Olympus")]).toEqual([true, false]);
  });

  it("include the last chosen day", () => {
    expect(customRange("2026-03-01", "2026-03-02", "UTC")).toEqual({
      from: "2026-03-01T00:00",
      to: "2026-03-03T00:00",
      tz: "UTC",
      step: "hour",
    });
  });
});

describe("the time before", () => {
  const spanBefore = (from: string, to: string) => {
    const found = previousRange({ from, to, tz: "UTC", step: "day" });
    return [found.from, found.to];
  };

  it("is as long, and ends where this one begins", () => {
    expect(spanBefore("2026-03-02T00:00", "2026-03-08T15:00")).toEqual([
      "2026-02-23T09:00",
      "2026-03-02T00:00",
    ]);
  });

  it("is the same days of the month before, which may be shorter", () => {
    expect(spanBefore("2026-03-01T00:00", "2026-03-08T13:00")).toEqual([
      "2026-02-01T00:00",
      "2026-02-08T13:00",
    ]);
    expect(spanBefore("2026-03-01T00:00", "2026-03-31T12:00")).toEqual([
      "2026-02-01T00:00",
      "2026-03-01T00:00",
    ]);
    expect(spanBefore("2026-02-01T00:00", "2026-03-01T00:00")).toEqual([
      "2026-01-01T00:00",
      "2026-02-01T00:00",
    ]);
    expect(spanBefore("2025-04-01T00:00", "2026-03-08T13:00")).toEqual([
      "2024-04-01T00:00",
      "2025-03-08T13:00",
    ]);
  });
});

describe("charts", () => {
  it("have no label for a tooltip that points at nothing", () => {
    expect([undefined, "", null].map((at) => tooltipLabel(at, "day"))).toEqual(["", "", ""]);
    expect(tooltipLabel("2026-03-08", "day")).toBe(stepLabel("2026-03-08", "day"));
  });

  const point = (at: string, group: string, amount: string) => ({
    at,
    group,
    label: group.toUpperCase(),
    requests: 1,
    tokens: 2,
    amount,
    cost: "0",
  });
  const days: Range = {
    from: "2026-03-01T00:00",
    to: "2026-03-04T00:00",
    tz: "Europe/Berlin",
    step: "day",
  };

  it("have a row for every step, also the empty ones", () => {
    const points = [
      point("2026-03-01T00:00:00+01:00", "a", "0.5"),
      point("2026-03-01T00:00:00+01:00", "b", "0.25"),
      point("2026-03-03T00:00:00+01:00", "a", "2"),
    ];
    expect(chartRows(points, days)).toEqual([
      { at: "2026-03-01", a: 0.5, b: 0.25 },
      { at: "2026-03-02", a: 0, b: 0 },
      { at: "2026-03-03", a: 2, b: 0 },
    ]);
    expect(seriesOf(points).map(({ label }) => label)).toEqual(["A", "B"]);
  });

  it("put many groups' cheapest into one, and lose nothing of them", () => {
    const points = Array.from({ length: 14 }, (_, n) =>
      point("2026-03-02T00:00:00+01:00", `g${n}`, String(n + 1)),
    );
    const series = seriesOf(points);
    expect(series).toHaveLength(10);
    expect(series.at(-1)?.label).toBe("5 others");
    const row = chartRows(points, days)[1] ?? { at: "" };
    const heights = series.map(({ group }) => Number(row[group]));
    expect(heights.reduce((sum, height) => sum + height, 0)).toBe((14 * 15) / 2);
    expect(heights.at(-1)).toBe(1 + 2 + 3 + 4 + 5);
  });

  it("name every step by what it begins with", () => {
    expect(stepsOf({ ...days, from: "2025-12-01T00:00", step: "month" })).toEqual([
      "2025-12",
      "2026-01",
      "2026-02",
      "2026-03",
    ]);
    vi.stubGlobal("navigator", { language: "en-GB" });
    expect([
      stepLabel("2026-03", "month"),
      stepLabel("2026-03-08", "day"),
      stepLabel("2026-03-08T14", "hour"),
    ]).toEqual(["Mar 2026", "8 Mar", "8 Mar, 14:00"]);
  });

  it("break the unit cost where there were no tokens", () => {
    const step: UsageGroup = {
      group: "2026-03-02T00:00:00+01:00",
      label: "2026-03-02",
      ...someNumbers({ amount_per_1m: "2.5", cost_per_1m: null }),
    };
    expect(unitCostRows([step], days)).toEqual([
      { at: "2026-03-01", price: null, cost: null },
      { at: "2026-03-02", price: 2.5, cost: null },
      { at: "2026-03-03", price: null, cost: null },
    ]);
  });
});
