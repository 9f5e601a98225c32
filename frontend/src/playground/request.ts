import type { Message } from "./chat";
import type { Settings } from "./settings";

/** The body of a request, as a program would send it: what is left at the server's default is left out. */
export type RequestBody = Record<string, unknown> & { model: string };

const TOP_LOGPROBS = 5;
/** The server's own defaults. */
const DEFAULTS = {
  top_p: 1,
  top_k: 0,
  min_p: 0,
  presence_penalty: 0,
  frequency_penalty: 0,
  repetition_penalty: 1,
  seed: null,
} as const;

function sampling(settings: Settings): Record<string, unknown> {
  const given = {
    top_p: settings.topP,
    top_k: settings.topK,
    min_p: settings.minP,
    presence_penalty: settings.presencePenalty,
    frequency_penalty: settings.frequencyPenalty,
    repetition_penalty: settings.repetitionPenalty,
    seed: settings.seed,
  };
  const changed = Object.entries(given).filter(
    ([name, value]) => value !== DEFAULTS[name as keyof typeof DEFAULTS],
  );
  return {
    temperature: settings.temperature,
    max_tokens: settings.maxTokens,
    ...Object.fromEntries(changed),
    ...(settings.stop.length > 0 ? { stop: settings.stop } : {}),
  };
}

function responseFormat({ form, schema }: Settings): Record<string, unknown> {
  if (form === "text") return {};
  if (form === "json") return { response_format: { type: "json_object" } };
  const json_schema = { name: "answer", schema: JSON.parse(schema) as unknown };
  return { response_format: { type: "json_schema", json_schema } };
}

export function chatBody(model: string, messages: Message[], settings: Settings): RequestBody {
  return {
    model,
    messages,
    ...sampling(settings),
    ...responseFormat(settings),
    ...(settings.logprobs ? { logprobs: true, top_logprobs: TOP_LOGPROBS } : {}),
  };
}

export function completionBody(model: string, prompt: string, settings: Settings): RequestBody {
  return {
    model,
    prompt,
    ...sampling(settings),
    ...responseFormat(settings),
    ...(settings.logprobs ? { logprobs: TOP_LOGPROBS } : {}),
  };
}

export function pathOf({ mode }: Settings): string {
  return mode === "chat" ? "/v1/chat/completions" : "/v1/completions";
}
