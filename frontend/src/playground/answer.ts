import { messageOf } from "../api/errors";
import {
  type ChatUsage,
  type Chunk,
  chancesOf,
  type Message,
  type TokenChance,
  textOf,
} from "./chat";
import type { RequestBody } from "./request";

/** Times are milliseconds of one clock. */
export interface Answer {
  state: "waiting" | "streaming" | "done" | "stopped" | "failed";
  text: string;
  /** Of each token, where they were asked for. */
  chances: TokenChance[];
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
  /** What was sent, and where to. */
  path: string;
  body: RequestBody;
  answer: Answer;
}

export function newAnswer(now: number): Answer {
  return {
    state: "waiting",
    text: "",
    chances: [],
    startedAt: now,
    firstAt: null,
    lastAt: null,
    finishReason: null,
    usage: null,
    problem: null,
  };
}

export function withChunk(answer: Answer, chunk: Chunk, now: number): Answer {
  const choice = chunk.choices[0];
  const text = textOf(choice);
  const chances = chancesOf(choice);
  return {
    ...answer,
    state: text ? "streaming" : answer.state,
    text: answer.text + text,
    chances: chances.length > 0 ? [...answer.chances, ...chances] : answer.chances,
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
