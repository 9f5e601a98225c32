// @vitest-environment node
import { expect, it } from "vitest";
import { forecastOf } from "./forecast";

it.each([
  ["2026-06-16T00:00:00Z", "15", 30],
  ["2026-02-08T00:00:00Z", "7", 28],
  ["2026-12-31T12:00:00Z", "30.5", 31],
  ["2026-03-01T23:59:59Z", "9", null],
])("at %s after %s dollars says %s", (now, spent, forecast) => {
  expect(forecastOf(spent, new Date(now))).toBe(forecast);
});
