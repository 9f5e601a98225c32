// @vitest-environment node
import { describe, expect, it } from "vitest";
import {
  ended,
  failed,
  isRunning,
  messagesFor,
  newAnswer,
  type Turn,
  timeToFirst,
  tokensPerSecond,
  withChunk,
} from "./answer";

const say = (content: string) => ({ choices: [{ delta: { content } }] });

describe("an answer", () => {
  it("gathers text, times and usage", () => {
    let answer = withChunk(newAnswer(1_000), { choices: [{ delta: { content: "" } }] }, 1_100);
    expect(answer.state).toBe("waiting");
    answer = withChunk(answer, say("Ahoy"), 1_250);
    answer = withChunk(answer, say(" matey"), 1_750);
    answer = withChunk(answer, { choices: [{ delta: {}, finish_reason: "stop" }] }, 1_800);
    const usage = { prompt_tokens: 9, completion_tokens: 6, cost: "0.00002" };
    answer = ended(withChunk(answer, { choices: [], usage }, 1_810));
    expect(answer).toMatchObject({
      state: "done",
      text: "Ahoy matey",
      finishReason: "stop",
      usage,
    });
    expect(timeToFirst(answer)).toBe(250);
    expect(tokensPerSecond(answer)).toBe(10);
    expect(isRunning(answer)).toBe(false);
  });

  it("has no speed without two tokens", () => {
    const one = { prompt_tokens: 9, completion_tokens: 1 };
    const answer = withChunk(withChunk(newAnswer(0), say("x"), 5), { choices: [], usage: one }, 6);
    expect(tokensPerSecond(answer)).toBeNull();
    expect(timeToFirst(newAnswer(0))).toBeNull();
  });
});

it("sends the conversation so far, without what failed", () => {
  const turn = (id: number, prompt: string, text: string): Turn => ({
    id,
    prompt,
    path: "/v1/chat/completions",
    body: { model: "pirate" },
    answer: ended({ ...newAnswer(0), text }),
  });
  const broken = turn(1, "second", "half");
  const turns = [
    turn(0, "first", "Aye"),
    { ...broken, answer: failed(broken.answer, new Error("gone")) },
  ];
  expect(messagesFor("  Be brief. ", turns, "third")).toEqual([
    { role: "system", content: "Be brief." },
    { role: "user", content: "first" },
    { role: "assistant", content: "Aye" },
    { role: "user", content: "third" },
  ]);
  expect(messagesFor("", [], "hi")).toEqual([{ role: "user", content: "hi" }]);
});
