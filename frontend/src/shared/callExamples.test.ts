// @vitest-environment node
import { expect, it } from "vitest";
import { callExamples } from "./callExamples";

const body = {
  model: "pirate",
  messages: [{ role: "user", content: `It's "quoted" \\ ünï\n🏴` }],
  temperature: 0.5,
  stop: [],
  seed: null,
  logprobs: true,
  top_k: 40,
  response_format: { type: "json_schema", json_schema: { name: "a", schema: {} } },
};
const examples = callExamples("http://door.example/v1/", "/v1/chat/completions", body);

/** What a POSIX shell makes of a word: quoted pieces, and a quote after a backslash. */
function unquoted(word: string): string {
  const pieces = word.match(/'[^']*'|\\'/g) ?? [];
  expect(pieces.join("")).toBe(word);
  return pieces.map((piece) => (piece === "\\'" ? "'" : piece.slice(1, -1))).join("");
}

it("quotes for a shell, which gives back the very same JSON", () => {
  const [, word = ""] = /-d ('.*)$/s.exec(examples.curl ?? "") ?? [];
  expect(JSON.parse(unquoted(word))).toEqual(body);
  expect(examples.curl).toContain("curl http://door.example/v1/chat/completions \\\n");
});

it("gives OpenAI's clients what they know by name, and the rest beside it", () => {
  expect(examples.Python).toContain('base_url="http://door.example/v1"');
  expect(examples.Python).toContain("client.chat.completions.create(");
  expect(examples.Python).toContain("    seed=None,\n");
  expect(examples.Python).toContain("    logprobs=True,\n");
  expect(examples.Python).toContain('    extra_body={\n        "top_k": 40,\n    },\n');
  expect(examples.TypeScript).toContain("own parameters\n  top_k: 40,\n");
  const completion = callExamples("http://door.example", "/v1/completions", {
    model: "m",
    prompt: "x",
  });
  expect(completion.Python).toContain("answer.choices[0].text");
  expect(completion.TypeScript).toContain("client.completions.create({");
});
