import { FIRST_SETTINGS, type Settings } from "./settings";

export const MOST_COLUMNS = 4;

/** What a link opens: whose models, which of them, how they are asked, and what. */
export interface Shared {
  tenant: string;
  models: string[];
  settings: Settings;
  prompt: string;
}

function toBase64Url(text: string): string {
  const bytes = new TextEncoder().encode(text);
  const binary = Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");
  return btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

function fromBase64Url(text: string): string {
  const binary = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  return new TextDecoder("utf-8", { fatal: true }).decode(
    Uint8Array.from(binary, (character) => character.charCodeAt(0)),
  );
}

/** Behind the `#`, so that it reaches no server and no log. */
export function toHash(shared: Shared): string {
  return `#${toBase64Url(JSON.stringify(shared))}`;
}

type Fields = Record<string, unknown>;

function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function texts(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === "string") : [];
}

const CHOICES: Partial<Record<keyof Settings, readonly unknown[]>> = {
  mode: ["chat", "completion"],
  form: ["text", "json", "schema"],
};

/** Each setting that is of its kind; what is not, or is missing, is as at first. */
function settingsFrom(value: unknown): Settings {
  const given = isFields(value) ? value : {};
  const isOf = (name: keyof Settings) => {
    const choices = CHOICES[name];
    if (choices) return choices.includes(given[name]);
    if (name === "seed") return given.seed === null || Number.isInteger(given.seed);
    return typeof given[name] === typeof FIRST_SETTINGS[name];
  };
  const names = (Object.keys(FIRST_SETTINGS) as (keyof Settings)[]).filter(
    (name) => name !== "stop",
  );
  const kept = names.filter(isOf).map((name) => [name, given[name]] as const);
  return { ...FIRST_SETTINGS, ...Object.fromEntries(kept), stop: texts(given.stop) };
}

/** null for anything that `toHash` did not write. */
export function fromHash(hash: string): Shared | null {
  try {
    const value: unknown = JSON.parse(fromBase64Url(hash.replace(/^#/, "")));
    if (!isFields(value) || typeof value.tenant !== "string") return null;
    return {
      tenant: value.tenant,
      models: texts(value.models).slice(0, MOST_COLUMNS),
      settings: settingsFrom(value.settings),
      prompt: typeof value.prompt === "string" ? value.prompt : "",
    };
  } catch {
    return null;
  }
}
