import { screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it, vi } from "vitest";
import { fakeServer } from "../test/fakeServer";
import { renderPage } from "../test/renderPage";
import { anAdapter } from "../test/samples";
import { Component as PlaygroundPage } from "./PlaygroundPage";
import { toHash } from "./permalink";
import { FIRST_SETTINGS } from "./settings";

const base = "SmolLM2-135M-Instruct";

/** The door's streams are not of the fake server's shape: they are answered here. */
function serve(lines: string[]) {
  fakeServer({
    "GET /api/v1/adapters": { body: { data: [anAdapter()], next: null } },
    "GET /api/v1/adapters/shared": { body: { data: [] } },
    "POST /api/v1/playground/key": {
      status: 201,
      body: { key: "vnr_k", expires_at: "2099-01-01T00:00:00Z" },
    },
  });
  const rest = globalThis.fetch;
  const sent: { path: string; body: Record<string, unknown> }[] = [];
  vi.stubGlobal("fetch", async (request: Request | string, init?: RequestInit) => {
    if (typeof request !== "string") return rest(request);
    sent.push({ path: request, body: JSON.parse(String(init?.body)) });
    return new Response(`${lines.map((line) => `data: ${line}\n\n`).join("")}data: [DONE]\n\n`);
  });
  return sent;
}

const words = ['{"choices":[{"delta":{"content":"Ahoy"},"finish_reason":"stop"}]}'];

it("asks every column the same, each its own model", async () => {
  const sent = serve(words);
  renderPage(<PlaygroundPage />);
  await screen.findByRole("region", { name: "Conversation with pirate" });
  await userEvent.click(screen.getByRole("button", { name: "Add a column" }));
  await userEvent.type(screen.getByLabelText("Message"), "hello{Enter}");
  expect(await screen.findAllByText("Ahoy")).toHaveLength(3);
  expect(sent.map(({ body }) => body.model).sort()).toEqual([base, base, "pirate"].sort());
  await userEvent.click(screen.getByRole("button", { name: "Add a column" }));
  expect(screen.getByRole("button", { name: "Add a column" })).toHaveProperty("disabled", true);
});

it("shows how likely each token was, and the request as code", async () => {
  const logprobs = {
    content: [
      { token: "Ahoy", logprob: Math.log(0.02), top_logprobs: [{ token: "Hi", logprob: -0.1 }] },
    ],
  };
  const chunk = { choices: [{ delta: { content: "Ahoy" }, logprobs, finish_reason: "stop" }] };
  const sent = serve([JSON.stringify(chunk)]);
  const settings = { ...FIRST_SETTINGS, logprobs: true };
  const hash = toHash({ tenant: "ten_1", models: ["pirate"], settings, prompt: "hello" });
  renderPage(<PlaygroundPage />, { path: `/playground${hash}` });
  await userEvent.type(await screen.findByLabelText("Message"), "{Enter}");
  const token = await screen.findByText("Ahoy");
  expect(token.getAttribute("data-heat")).toBe("3");
  expect(token.getAttribute("title")).toBe('2%\n"Hi" 90.5%');
  expect(sent[0]?.body).toMatchObject({ logprobs: true, messages: [{ content: "hello" }] });
  await userEvent.click(screen.getByRole("button", { name: "Show as code" }));
  const dialog = await screen.findByRole("dialog");
  expect(await within(dialog).findByText(/"top_logprobs":5/)).toBeDefined();
});

it("completes a text without a conversation", async () => {
  const sent = serve(['{"choices":[{"text":" upon a time","finish_reason":"length"}]}']);
  renderPage(<PlaygroundPage />);
  await screen.findByRole("region", { name: "Conversation with pirate" });
  await userEvent.click(screen.getByText("Completion"));
  await userEvent.type(screen.getByLabelText("Message"), "Once{Enter}");
  expect(await screen.findAllByText(/upon a time/)).toHaveLength(2);
  expect(sent[0]).toMatchObject({ path: "/v1/completions", body: { prompt: "Once" } });
});

it("sends nothing while the schema is none", async () => {
  const sent = serve(words);
  const settings = { ...FIRST_SETTINGS, form: "schema" as const, schema: "{" };
  const hash = toHash({ tenant: "ten_1", models: ["pirate"], settings, prompt: "hello" });
  renderPage(<PlaygroundPage />, { path: `/playground${hash}` });
  await userEvent.type(await screen.findByLabelText("Message"), "{Enter}");
  expect(screen.getByRole("button", { name: "Send" })).toHaveProperty("disabled", true);
  expect(sent).toEqual([]);
});

it("says so when a link is of another tenant", async () => {
  serve(words);
  const shared = { tenant: "ten_9", models: ["x"], settings: FIRST_SETTINGS, prompt: "" };
  renderPage(<PlaygroundPage />, { path: `/playground${toHash(shared)}` });
  expect(await screen.findByText("This link is of another tenant")).toBeDefined();
});
