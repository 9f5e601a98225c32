// @vitest-environment node
import { describe, expect, it, vi } from "vitest";
import { type Chunk, chancesOf, streamAnswer } from "./chat";

const PATH = "/v1/chat/completions";
const REQUEST = {
  model: "pirate",
  messages: [{ role: "user" as const, content: "hi" }],
  temperature: 0,
  max_tokens: 8,
};

function answerWith(text: string, status = 200) {
  const fetchFake = vi.fn(
    async (_url: string, _init: RequestInit) => new Response(text, { status }),
  );
  vi.stubGlobal("fetch", fetchFake);
  return fetchFake;
}

async function collect(): Promise<Chunk[]> {
  const chunks: Chunk[] = [];
  for await (const chunk of streamAnswer(PATH, REQUEST, "vnr_k", new AbortController().signal)) {
    chunks.push(chunk);
  }
  return chunks;
}

const delta = (content: string) => `data: {"choices":[{"delta":{"content":"${content}"}}]}\n\n`;

describe("streamAnswer", () => {
  it("asks for usage, with the key and without the session", async () => {
    const fetchFake = answerWith(`${delta("Ahoy")}data: [DONE]\n\n`);
    expect(await collect()).toEqual([{ choices: [{ delta: { content: "Ahoy" } }] }]);
    const [url, init] = fetchFake.mock.calls[0] ?? [];
    expect(url).toBe("/v1/chat/completions");
    expect(init?.credentials).toBe("omit");
    expect(init?.headers).toMatchObject({ Authorization: "Bearer vnr_k" });
    expect(JSON.parse(String(init?.body))).toEqual({
      ...REQUEST,
      stream: true,
      stream_options: { include_usage: true },
    });
  });

  it("throws the door's sentence for a refusal", async () => {
    answerWith(
      '{"error":{"message":"The monthly budget is used up.","code":"insufficient_quota"}}',
      402,
    );
    await expect(collect()).rejects.toMatchObject({
      status: 402,
      message: "The monthly budget is used up.",
    });
  });

  it("throws an error that comes in mid-stream, after what arrived", async () => {
    answerWith(
      `${delta("Ah")}data: {"error":{"message":"The engine restarted."}}\n\ndata: [DONE]\n\n`,
    );
    const seen: Chunk[] = [];
    const run = async () => {
      for await (const chunk of streamAnswer(PATH, REQUEST, "k", new AbortController().signal))
        seen.push(chunk);
    };
    await expect(run()).rejects.toThrow("The engine restarted.");
    expect(seen).toHaveLength(1);
  });

  it("does not take a stream that breaks off for a whole answer", async () => {
    answerWith(delta("Ah"));
    await expect(collect()).rejects.toThrow("broke off");
  });
});

describe("chancesOf", () => {
  it("reads the shape of a chat", () => {
    const content = [
      {
        token: " yes",
        logprob: Math.log(0.5),
        top_logprobs: [{ token: " no", logprob: Math.log(0.25) }],
      },
    ];
    const [found] = chancesOf({ delta: { content: " yes" }, logprobs: { content } });
    expect(found?.token).toBe(" yes");
    expect(found?.chance).toBeCloseTo(0.5);
    expect(found?.likeliest[0]?.chance).toBeCloseTo(0.25);
  });

  it("reads the shape of a completion, whose first token may have none", () => {
    const found = chancesOf({
      text: "ab",
      logprobs: {
        tokens: ["a", "b"],
        token_logprobs: [null, Math.log(0.1)],
        top_logprobs: [null, { c: Math.log(0.9) }],
      },
    });
    expect(found.map(({ chance }) => chance === null)).toEqual([true, false]);
    expect(found[1]?.likeliest).toEqual([{ token: "c", chance: expect.closeTo(0.9) }]);
  });

  it("finds none where none were asked for", () => {
    expect(chancesOf({ delta: { content: "x" }, logprobs: null })).toEqual([]);
    expect(chancesOf(undefined)).toEqual([]);
  });
});
