// @vitest-environment node
import { expect, it } from "vitest";
import { configDiff } from "./configDiff";

it("names what is other, new or gone, inside objects too", () => {
  const before = { r: 8, target_modules: ["v_proj", "q_proj"], rank_pattern: { a: 4 }, old: null };
  const after = { r: 16, target_modules: ["q_proj", "v_proj"], rank_pattern: { a: 8, b: 2 } };
  expect(configDiff(before, after)).toEqual([
    { field: "old", before: "null", after: null },
    { field: "r", before: "8", after: "16" },
    { field: "rank_pattern.a", before: "4", after: "8" },
    { field: "rank_pattern.b", before: null, after: "2" },
  ]);
  expect(configDiff(before, before)).toEqual([]);
});
