export type Mode = "chat" | "completion";
export type Form = "text" | "json" | "schema";

/** What a request is sent with. Empty text and null: left to the server. */
export interface Settings {
  mode: Mode;
  system: string;
  temperature: number;
  maxTokens: number;
  topP: number;
  topK: number;
  minP: number;
  presencePenalty: number;
  frequencyPenalty: number;
  repetitionPenalty: number;
  seed: number | null;
  stop: string[];
  form: Form;
  /** A JSON schema as text; counts where form is "schema". */
  schema: string;
  logprobs: boolean;
}

export const FIRST_SETTINGS: Settings = {
  mode: "chat",
  system: "",
  temperature: 0,
  maxTokens: 256,
  topP: 1,
  topK: 0,
  minP: 0,
  presencePenalty: 0,
  frequencyPenalty: 0,
  repetitionPenalty: 1,
  seed: null,
  stop: [],
  form: "text",
  schema: "",
  logprobs: false,
};

/** Why a text is no JSON schema; null where it may be one. The server says the rest. */
export function schemaProblem(text: string): string | null {
  try {
    const value: unknown = JSON.parse(text);
    const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
    return isObject ? null : "A JSON schema is an object: begin with {";
  } catch (error) {
    return `This is not JSON: ${error instanceof Error ? error.message : "it cannot be read"}`;
  }
}

export function settingsProblem({ form, schema }: Settings): string | null {
  return form === "schema" ? schemaProblem(schema) : null;
}
