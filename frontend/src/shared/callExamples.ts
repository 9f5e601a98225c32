/** Parameters that OpenAI's own clients know by name; others go into their bag for more. */
const OF_OPENAI = new Set([
  "model",
  "messages",
  "prompt",
  "temperature",
  "max_tokens",
  "top_p",
  "presence_penalty",
  "frequency_penalty",
  "seed",
  "stop",
  "response_format",
  "logprobs",
  "top_logprobs",
]);

type Body = Record<string, unknown>;

/** The door's address without `/v1`, whichever way the server spells it. */
export function doorBase(doorUrl: string): string {
  return doorUrl.replace(/\/+$/, "").replace(/\/v1$/, "");
}

/** A request as programs write it; works as pasted once the key is in the environment. */
export function callExamples(doorUrl: string, path: string, body: Body): Record<string, string> {
  const base = doorBase(doorUrl);
  return {
    curl: curlExample(base, path, body),
    Python: pythonExample(base, path, body),
    TypeScript: typescriptExample(base, path, body),
  };
}

/** In single quotes, as a shell reads them. */
function shellQuoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

function curlExample(base: string, path: string, body: Body): string {
  return `curl ${base}${path} \\
  -H "Authorization: Bearer $VENEER_API_KEY" \\
  -H "Content-Type: application/json" \\
  -d ${shellQuoted(JSON.stringify(body))}`;
}

function pythonValue(value: unknown, indent: string): string {
  const deeper = `${indent}    `;
  if (value === null || value === undefined) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (Array.isArray(value)) {
    if (value.length === 0) return "[]";
    const items = value.map((item) => `${deeper}${pythonValue(item, deeper)},\n`);
    return `[\n${items.join("")}${indent}]`;
  }
  if (typeof value === "object") {
    const items = Object.entries(value).map(
      ([name, item]) => `${deeper}${JSON.stringify(name)}: ${pythonValue(item, deeper)},\n`,
    );
    return items.length === 0 ? "{}" : `{\n${items.join("")}${indent}}`;
  }
  return JSON.stringify(value);
}

/** Text that JSON writes is text that Python reads: the escapes are the same. */
function pythonExample(base: string, path: string, body: Body): string {
  const isChat = path.endsWith("/chat/completions");
  const known = Object.entries(body).filter(([name]) => OF_OPENAI.has(name));
  const more = Object.fromEntries(Object.entries(body).filter(([name]) => !OF_OPENAI.has(name)));
  const lines = known.map(([name, value]) => `    ${name}=${pythonValue(value, "    ")},\n`);
  if (Object.keys(more).length > 0) lines.push(`    extra_body=${pythonValue(more, "    ")},\n`);
  return `import os
from openai import OpenAI

client = OpenAI(base_url="${base}/v1", api_key=os.environ["VENEER_API_KEY"])
answer = client.${isChat ? "chat.completions" : "completions"}.create(
${lines.join("")})
print(answer.choices[0].${isChat ? "message.content" : "text"})`;
}

/** A parameter that OpenAI's types do not know is sent all the same. */
function typescriptField(name: string, value: unknown): string {
  const why = OF_OPENAI.has(name)
    ? ""
    : "  // @ts-expect-error: not among OpenAI's own parameters\n";
  const text = JSON.stringify(value, null, 2).replaceAll("\n", "\n  ");
  return `${why}  ${name}: ${text},\n`;
}

function typescriptExample(base: string, path: string, body: Body): string {
  const isChat = path.endsWith("/chat/completions");
  const fields = Object.entries(body).map(([name, value]) => typescriptField(name, value));
  return `import OpenAI from "openai";

const client = new OpenAI({ baseURL: "${base}/v1", apiKey: process.env.VENEER_API_KEY });
const answer = await client.${isChat ? "chat.completions" : "completions"}.create({
${fields.join("")}});
console.log(answer.choices[0].${isChat ? "message.content" : "text"});`;
}
