// @vitest-environment node
import { describe, expect, it } from "vitest";
import { coveredBytes, missingRanges, planParts } from "./plan";

describe("planParts", () => {
  it("cuts a whole file into parts, the last one short", () => {
    expect(planParts(10, [], 4)).toEqual([
      { start: 0, end: 4 },
      { start: 4, end: 8 },
      { start: 8, end: 10 },
    ]);
  });

  it("sends only what the server lacks, and cuts at what it has", () => {
    expect(
      planParts(
        20,
        [
          [4, 8],
          [15, 16],
        ],
        5,
      ),
    ).toEqual([
      { start: 0, end: 4 },
      { start: 8, end: 13 },
      { start: 13, end: 15 },
      { start: 16, end: 20 },
    ]);
  });

  it("has nothing to send for a whole or an empty file", () => {
    expect(planParts(8, [[0, 8]], 4)).toEqual([]);
    expect(planParts(0, [], 4)).toEqual([]);
  });

  it("covers every byte exactly once, whatever has arrived", () => {
    for (let seed = 1; seed <= 200; seed += 1) {
      const size = (seed * 37) % 101;
      const held = [
        [(seed * 7) % 50, ((seed * 7) % 50) + (seed % 9)],
        [(seed * 13) % 60, ((seed * 13) % 60) + (seed % 5)],
      ].map(([a = 0, b = 0]) => [Math.min(a, size), Math.min(b, size)]);
      const times = new Array<number>(size).fill(0);
      for (const [start = 0, end = 0] of held) times.fill(1, start, end);
      for (const { start, end } of planParts(size, held, 6)) {
        expect(end - start).toBeLessThanOrEqual(6);
        for (let at = start; at < end; at += 1) times[at] = (times[at] ?? 0) + 1;
      }
      expect(times).toEqual(new Array<number>(size).fill(1));
    }
  });
});

describe("ranges", () => {
  it("counts overlapping and unsorted ranges once", () => {
    expect(
      coveredBytes([
        [6, 9],
        [0, 4],
        [3, 5],
      ]),
    ).toBe(8);
  });

  it("names the gaps", () => {
    expect(missingRanges(10, [[2, 4]])).toEqual([
      { start: 0, end: 2 },
      { start: 4, end: 10 },
    ]);
  });
});
