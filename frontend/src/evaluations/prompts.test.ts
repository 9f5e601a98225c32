// @vitest-environment node
import { expect, it } from "vitest";
import { promptsProblem, readPrompts } from "./prompts";

it("asks each line as a user, and no empty one", () => {
  expect(readPrompts("lines", " Ahoy? \n\n[1] who?\r\n")).toEqual([
    { messages: [{ role: "user", content: "Ahoy?" }] },
    { messages: [{ role: "user", content: "[1] who?" }] },
  ]);
});

it("takes JSON as it is", () => {
  const prompts = [{ prompt: "A ship:", contains: "Arr", json_schema: { type: "object" } }];
  expect(readPrompts("json", JSON.stringify(prompts))).toEqual(prompts);
});

it.each([
  ["lines", " \n ", "at least one prompt"],
  ["json", "{", "This is no JSON"],
  ["json", "", "This is no JSON"],
  ["json", '{"prompt": "x"}', "Use an array"],
  ["json", "[]", "Use an array"],
] as const)("says why %s %j are no prompts", (form, text, why) => {
  expect(promptsProblem(form, text)).toContain(why);
});
