import type { EvaluationPrompt } from "../api/types";

export type PromptForm = "lines" | "json";

/** Prompts as somebody wrote them. Throws a sentence fit to show. */
export function readPrompts(form: PromptForm, text: string): EvaluationPrompt[] {
  return form === "lines" ? fromLines(text) : fromJson(text);
}

/** Each line is asked as a user's message. */
function fromLines(text: string): EvaluationPrompt[] {
  const lines = text.split("\n").map((line) => line.trim());
  const prompts = lines
    .filter((line) => line !== "")
    .map((content) => ({ messages: [{ role: "user" as const, content }] }));
  if (prompts.length === 0) throw new Error("Write at least one prompt");
  return prompts;
}

/** What is in each object is the server's to judge: its sentence names the place. */
function fromJson(text: string): EvaluationPrompt[] {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new Error(`This is no JSON: ${error instanceof Error ? error.message : String(error)}`);
  }
  if (!Array.isArray(value) || value.length === 0) {
    throw new Error('Use an array with at least one prompt, such as [{"prompt": "Ahoy"}]');
  }
  return value as EvaluationPrompt[];
}

/** Why a text is no prompts; null where it is. */
export function promptsProblem(form: PromptForm, text: string): string | null {
  try {
    readPrompts(form, text);
    return null;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}
