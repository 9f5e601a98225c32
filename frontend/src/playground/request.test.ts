// @vitest-environment node
import { expect, it } from "vitest";
import { chatBody, completionBody, pathOf } from "./request";
import { FIRST_SETTINGS, schemaProblem, settingsProblem } from "./settings";

const messages = [{ role: "user" as const, content: "hi" }];

it("leaves out what the server does anyway", () => {
  expect(chatBody("pirate", messages, FIRST_SETTINGS)).toEqual({
    model: "pirate",
    messages,
    temperature: 0,
    max_tokens: 256,
  });
  expect(completionBody("pirate", "Once", FIRST_SETTINGS)).toEqual({
    model: "pirate",
    prompt: "Once",
    temperature: 0,
    max_tokens: 256,
  });
});

it("sends every setting under the API's name", () => {
  const settings = {
    ...FIRST_SETTINGS,
    temperature: 0.7,
    topP: 0.9,
    topK: 40,
    minP: 0.05,
    presencePenalty: 0.5,
    frequencyPenalty: -0.5,
    repetitionPenalty: 1.1,
    seed: 0,
    stop: ["END"],
    form: "schema" as const,
    schema: '{"type": "object"}',
    logprobs: true,
  };
  const sampling = {
    temperature: 0.7,
    max_tokens: 256,
    top_p: 0.9,
    top_k: 40,
    min_p: 0.05,
    presence_penalty: 0.5,
    frequency_penalty: -0.5,
    repetition_penalty: 1.1,
    seed: 0,
    stop: ["END"],
    response_format: {
      type: "json_schema",
      json_schema: { name: "answer", schema: { type: "object" } },
    },
  };
  expect(chatBody("pirate", messages, settings)).toEqual({
    model: "pirate",
    messages,
    ...sampling,
    logprobs: true,
    top_logprobs: 5,
  });
  expect(completionBody("pirate", "Once", settings)).toEqual({
    model: "pirate",
    prompt: "Once",
    ...sampling,
    logprobs: 5,
  });
  expect(pathOf({ ...settings, mode: "completion" })).toBe("/v1/completions");
});

it("says what is wrong with a schema before anything is sent", () => {
  expect(schemaProblem('{"type": "object"}')).toBeNull();
  expect(schemaProblem("[]")).toContain("object");
  expect(schemaProblem("{")).toContain("not JSON");
  expect(settingsProblem({ ...FIRST_SETTINGS, form: "text", schema: "{" })).toBeNull();
  expect(settingsProblem({ ...FIRST_SETTINGS, form: "schema", schema: "{" })).toContain("not JSON");
});
