// @vitest-environment node
import { describe, expect, it } from "vitest";
import { answer, type KvType, parameters, type Question, roof } from "./arithmetic";
import worked from "./worked.json";

function example(index: number) {
  const found = worked[index];
  if (!found) throw new Error("there is no such example");
  const question: Question = { ...found.question, kv: found.question.kv as KvType };
  return { ...found, question };
}

describe("what fits", () => {
  // Python's `engine.capacity` is held to the same file, so that both reckon alike.
  it.each(worked.map(({ name }, index) => [name, index] as const))("%s", (_, index) => {
    const { size, question, answer: expected } = example(index);
    expect(answer(size, question)).toMatchObject(expected);
  });

  it("agrees with the pencil of docs/capacity.md", () => {
    const { size, question } = example(0);
    const found = answer(size, question);
    expect(parameters(size)).toBe(8_030_261_248);
    expect(found.weightBytes / 1e9).toBeCloseTo(16.06, 2);
    expect(found.poolBytes / 1e9).toBeCloseTo(63.94, 2);
    expect(found.ridge).toBeCloseTo(295.2, 1);
    expect(found.concurrency).toBe(119);
    // 16.06 GB + 119 x 4096 x 131072 B, at 3.35 TB/s.
    expect(found.stepSeconds).toBeCloseTo(0.02387, 4);
    expect(found.tokensPerSecond).toBeCloseTo(119 / 0.02387, -1);
  });

  it("says so where nothing does", () => {
    const { size, question } = example(0);
    const found = answer(size, { ...question, memory: 10e9 });
    expect(found.poolBytes).toBeLessThan(0);
    expect(found).toMatchObject({
      poolTokens: 0,
      concurrency: 0,
      stepSeconds: null,
      tokensPerSecond: null,
    });
  });

  it("counts what a token of a mixture is multiplied with", () => {
    const { size, question } = example(3);
    expect(parameters(size, { active: true })).toBeLessThan(parameters(size) / 8);
    const { ridge, ridgeTokens } = answer(size, question);
    expect(ridgeTokens).toBeGreaterThan(8 * ridge);
  });
});

it("has a roof that rises with the tokens of a step up to the ridge, and no further", () => {
  const { size, question } = example(0);
  const { ridgeTokens } = answer(size, question);
  expect(roof(size, question, 1) / (question.flops / ridgeTokens)).toBeCloseTo(1, 9);
  expect(roof(size, question, ridgeTokens * 2)).toBe(question.flops);
});
