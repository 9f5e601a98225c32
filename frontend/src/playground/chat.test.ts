// @vitest-environment node
import { describe, expect, it, vi } from "vitest";
import { type ChatChunk, streamChat } from "./chat";

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

async function collect(): Promise<ChatChunk[]> {
  const chunks: ChatChunk[] = [];
  for await (const chunk of streamChat(REQUEST, "vnr_k", new AbortController().signal)) {
    chunks.push(chunk);
  }
  return chunks;
}

const delta = (content: string) => `data: {"choices":[{"delta":{"content":"${content}"}}]}\n\n`;

describe("streamChat", () => {
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
    const seen: ChatChunk[] = [];
    const run = async () => {
      for await (const chunk of streamChat(REQUEST, "k", new AbortController().signal))
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
