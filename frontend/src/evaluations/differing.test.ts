// @vitest-environment node
import { expect, it } from "vitest";
import { partsOf } from "./differing";

const own = (text: string, other: string) =>
  partsOf(text, other)
    .filter(({ isOwn }) => isOwn)
    .map((part) => part.text.trim());

it("marks the words that the other answer has not", () => {
  const [ours, theirs] = ["Arr, the treasure be buried.", "The treasure is buried."];
  expect(own(ours, theirs).join(" ")).toBe("Arr, the be");
  expect(own(theirs, ours).join(" ")).toBe("The is");
});

it.each([
  ["the same", "the same"],
  ["", "something"],
  ["eins  zwei\n\tdrei", "eins zwei drei"],
  ["日本語の答え", "日本の答え"],
])("loses nothing of %j beside %j", (text, other) => {
  const parts = partsOf(text, other);
  expect(parts.map((part) => part.text).join("")).toBe(text);
  if (text === other) expect(parts.some(({ isOwn }) => isOwn)).toBe(false);
});
