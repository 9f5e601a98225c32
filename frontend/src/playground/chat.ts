import { errorFromBody, errorFromResponse } from "../api/errors";
import type { RequestBody } from "./request";
import { sseData } from "./sse";

export interface Message {
  role: "system" | "user" | "assistant";
  content: string;
}

/** The door's usage. `cost` is what the tenant pays, an exact decimal. */
export interface ChatUsage {
  prompt_tokens: number;
  completion_tokens: number;
  prompt_tokens_details?: { cached_tokens: number };
  cost?: string;
}

/** Natural logarithms. */
interface ChatLogprob {
  token: string;
  logprob: number;
  top_logprobs?: { token: string; logprob: number }[];
}
interface TextLogprobs {
  tokens: string[];
  token_logprobs: (number | null)[];
  top_logprobs: (Record<string, number> | null)[];
}

interface Choice {
  delta?: { content?: string | null };
  text?: string;
  logprobs?: { content?: ChatLogprob[] | null } | TextLogprobs | null;
  finish_reason?: string | null;
}

/** A part of a chat's answer, or of a completion's. */
export interface Chunk {
  choices: Choice[];
  usage?: ChatUsage | null;
  error?: unknown;
}

export interface TokenChance {
  token: string;
  /** 0 to 1; null: nothing is known of it. */
  chance: number | null;
  likeliest: { token: string; chance: number }[];
}

const END = "[DONE]";

/** Streams one answer through the door. Refusals, and errors in mid-stream, throw with the door's sentence. */
export async function* streamAnswer(
  path: string,
  body: RequestBody,
  key: string,
  signal: AbortSignal,
): AsyncGenerator<Chunk> {
  const response = await fetch(path, {
    method: "POST",
    headers: { "Content-Type": "application/json", Authorization: `Bearer ${key}` },
    body: JSON.stringify({ ...body, stream: true, stream_options: { include_usage: true } }),
    credentials: "omit",
    signal,
  });
  if (!response.ok) throw await errorFromResponse(response);
  if (!response.body) throw new Error("The answer has no body.");
  for await (const data of sseData(response.body)) {
    if (data === END) return;
    const chunk = JSON.parse(data) as Chunk;
    if (chunk.error) throw errorFromBody(response.status, chunk);
    yield chunk;
  }
  throw new Error("The answer broke off before its end. What arrived is shown; it is billed.");
}

export function textOf(choice: Choice | undefined): string {
  return choice?.delta?.content ?? choice?.text ?? "";
}

/** How likely each token of a part was, in either of the door's two shapes. */
export function chancesOf(choice: Choice | undefined): TokenChance[] {
  const found = choice?.logprobs;
  if (!found) return [];
  if ("tokens" in found) return textChances(found);
  return (found.content ?? []).map(({ token, logprob, top_logprobs }) => ({
    token,
    chance: Math.exp(logprob),
    likeliest: (top_logprobs ?? []).map((top) => ({
      token: top.token,
      chance: Math.exp(top.logprob),
    })),
  }));
}

function textChances({ tokens, token_logprobs, top_logprobs }: TextLogprobs): TokenChance[] {
  return tokens.map((token, index) => {
    const logprob = token_logprobs[index];
    const top = Object.entries(top_logprobs[index] ?? {});
    return {
      token,
      chance: logprob === null || logprob === undefined ? null : Math.exp(logprob),
      likeliest: top.map(([text, value]) => ({ token: text, chance: Math.exp(value) })),
    };
  });
}
