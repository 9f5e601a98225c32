import { errorFromBody, errorFromResponse } from "../api/errors";
import { sseData } from "./sse";

export interface Message {
  role: "system" | "user" | "assistant";
  content: string;
}

export interface ChatRequest {
  model: string;
  messages: Message[];
  temperature: number;
  max_tokens: number;
}

/** The door's usage. `cost` is what the tenant pays, an exact decimal in dollars. */
export interface ChatUsage {
  prompt_tokens: number;
  completion_tokens: number;
  prompt_tokens_details?: { cached_tokens: number };
  cost?: string;
}

export interface ChatChunk {
  choices: { delta?: { content?: string | null }; finish_reason?: string | null }[];
  usage?: ChatUsage | null;
  error?: unknown;
}

const END = "[DONE]";

/** Streams one answer through the door. Refusals, and errors in mid-stream, throw with the door's sentence. */
export async function* streamChat(
  request: ChatRequest,
  key: string,
  signal: AbortSignal,
): AsyncGenerator<ChatChunk> {
  const response = await fetch("/v1/chat/completions", {
    method: "POST",
    headers: { "Content-Type": "application/json", Authorization: `Bearer ${key}` },
    body: JSON.stringify({ ...request, stream: true, stream_options: { include_usage: true } }),
    credentials: "omit",
    signal,
  });
  if (!response.ok) throw await errorFromResponse(response);
  if (!response.body) throw new Error("The answer has no body.");
  for await (const data of sseData(response.body)) {
    if (data === END) return;
    const chunk = JSON.parse(data) as ChatChunk;
    if (chunk.error) throw errorFromBody(response.status, chunk);
    yield chunk;
  }
  throw new Error("The answer broke off before its end. What arrived is shown; it is billed.");
}
