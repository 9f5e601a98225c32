import { messageOf } from "../api/errors";
import type { ChatChunk, ChatUsage, Message } from "./chat";

/** Times are milliseconds of one clock. */
export interface Answer {
  state: "waiting" | "streaming" | "done" | "stopped" | "failed";
  text: string;
  startedAt: number;
  firstAt: number | null;
  lastAt: number | null;
  finishReason: string | null;
  usage: ChatUsage | null;
  problem: string | null;
}

export interface Turn {
  id: number;
  prompt: string;
  model: string;
  answer: Answer;
}

export function newAnswer(now: number): Answer {
  return {
    state: "waiting",
    text: "",
    startedAt: now,
    firstAt: null,
    lastAt: null,
    finishReason: null,
    usage: null,
    problem: null,
  };
}

export function withChunk(answer: Answer, chunk: ChatChunk, now: number): Answer {
  const choice = chunk.choices[0];
  const text = choice?.delta?.content ?? "";
  return {
    ...answer,
    state: text ? "streaming" : answer.state,
    text: answer.text + text,
    firstAt: answer.firstAt ?? (text ? now : null),
    lastAt: text ? now : answer.lastAt,
    finishReason: choice?.finish_reason ?? answer.finishReason,
    usage: chunk.usage ?? answer.usage,
  };
}

export function ended(answer: Answer): Answer {
  return { ...answer, state: "done" };
}

export function stopped(answer: Answer): Answer {
  return { ...answer, state: "stopped" };
}

export function failed(answer: Answer, error: unknown): Answer {
  return { ...answer, state: "failed", problem: messageOf(error) };
}

export function isRunning(answer: Answer): boolean {
  return answer.state === "waiting" || answer.state === "streaming";
}

/** Milliseconds to the first token. */
export function timeToFirst({ startedAt, firstAt }: Answer): number | null {
  return firstAt === null ? null : firstAt - startedAt;
}

/** Tokens per second after the first one; null while there is nothing to divide. */
export function tokensPerSecond({ usage, firstAt, lastAt }: Answer): number | null {
  if (!usage || firstAt === null || lastAt === null || usage.completion_tokens < 2) return null;
  return lastAt > firstAt ? ((usage.completion_tokens - 1) * 1000) / (lastAt - firstAt) : null;
}

/** What the next request sends: the system prompt, the turns so far, the new question. Failed turns are left out. */
export function messagesFor(system: string, turns: Turn[], prompt: string): Message[] {
  const told: Message[] = turns
    .filter(({ answer }) => answer.text !== "" && answer.state !== "failed")
    .flatMap(({ prompt: asked, answer }) => [
      { role: "user", content: asked },
      { role: "assistant", content: answer.text },
    ]);
  const opening: Message[] = system.trim() ? [{ role: "system", content: system.trim() }] : [];
  return [...opening, ...told, { role: "user", content: prompt }];
}
