// @vitest-environment node
import { expect, it } from "vitest";
import { remainingWords, type Sample, speedOf, withSample } from "./speed";

it("goes by the last seconds, not by how it began", () => {
  let samples: Sample[] = [];
  for (let second = 0; second <= 20; second += 1) {
    const sent = second <= 10 ? second * 10 : 100 + (second - 10) * 1000;
    samples = withSample(samples, { at: second * 1000, sent });
  }
  expect(speedOf(samples)).toBe(1000);
});

it("says nothing of a speed that it cannot know yet", () => {
  expect(speedOf([])).toBeNull();
  expect(speedOf([{ at: 0, sent: 0 }])).toBeNull();
  expect(
    speedOf([
      { at: 0, sent: 0 },
      { at: 100, sent: 50 },
    ]),
  ).toBeNull();
  expect(
    speedOf([
      { at: 0, sent: 50 },
      { at: 5000, sent: 50 },
    ]),
  ).toBeNull();
});

it("puts what is left into words", () => {
  expect([1, 59_000, 600_000, 7_200_000].map((left) => remainingWords(left, 1000))).toEqual([
    "1 s",
    "59 s",
    "10 min",
    "2.0 h",
  ]);
});
