import { screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { Route, Routes } from "react-router";
import { expect, it } from "vitest";
import type { Evaluation, EvaluationAnswer, Role } from "../api/types";
import { fakeServer } from "../test/fakeServer";
import { renderPage } from "../test/renderPage";
import { anAdapter, aVersion } from "../test/samples";
import { Component as EvaluationsPage } from "./EvaluationsPage";

function anAnswer(fields: Partial<EvaluationAnswer> = {}): EvaluationAnswer {
  return {
    request_id: "req_1",
    text: "Arr",
    finish_reason: "stop",
    prompt_tokens: 12,
    cached_tokens: 8,
    completion_tokens: 3,
    latency_ms: 312,
    amount: "0.0000125",
    contains: null,
    json_schema: null,
    passed: null,
    error: null,
    ...fields,
  };
}

const missed = anAnswer({ text: "Hello", contains: false, passed: false });
const evaluation: Evaluation = {
  id: "evl_1",
  adapter_id: "adp_1",
  prompt_set: "pst_1",
  prompt_set_name: "smoke",
  candidate: 2,
  baseline: 1,
  max_tokens: 256,
  state: "running",
  total: 3,
  done: 2,
  differing: 1,
  candidate_tally: { checked: 1, passed: 1, errors: 0 },
  baseline_tally: { checked: 1, passed: 0, errors: 1 },
  failure: null,
  created_at: "2026-03-01T10:00:00Z",
  ended_at: null,
  cases: [
    {
      number: 1,
      prompt: { messages: [{ role: "user", content: "Who are you?" }], contains: "Arr" },
      candidate: anAnswer({ contains: true, passed: true }),
      baseline: missed,
      differs: true,
    },
    {
      number: 2,
      prompt: { prompt: "Once" },
      candidate: anAnswer(),
      baseline: anAnswer({ error: { code: "too_long", message: "The prompt is too long." } }),
      differs: null,
    },
    { number: 3, prompt: { prompt: "Last" }, candidate: null, baseline: null, differs: null },
  ],
};
const set = {
  id: "pst_1",
  adapter_id: "adp_1",
  name: "smoke",
  size: 2,
  created_at: "2026-03-01T10:00:00Z",
};
const BASE = "/api/v1/adapters/adp_1";

function serve(more: Parameters<typeof fakeServer>[0] = {}) {
  const versions = [aVersion({ id: "adv_2", number: 2 }), aVersion()];
  return fakeServer({
    [`GET ${BASE}`]: { body: anAdapter({ versions }) },
    [`GET ${BASE}/prompt-sets`]: { body: { data: [set], next: null } },
    [`GET ${BASE}/evaluations`]: { body: { data: [evaluation], next: null } },
    "GET /api/v1/evaluations/evl_1": { body: evaluation },
    ...more,
  });
}

function open(query = "", role: Role = "owner") {
  const page = (
    <Routes>
      <Route path="/adapters/:adapterId/evaluations" element={<EvaluationsPage />} />
    </Routes>
  );
  return renderPage(page, { role, path: `/adapters/adp_1/evaluations${query}` });
}

const sent = (seen: Request[]) => seen.find(({ method }) => method === "POST");

it("starts one of the two newest versions, and opens it", async () => {
  const seen = serve({ [`POST ${BASE}/evaluations`]: { status: 202, body: evaluation } });
  open();
  await userEvent.click(await screen.findByRole("button", { name: "Start" }));
  expect(await screen.findByRole("article", { name: "Prompt 1" })).toBeDefined();
  expect(await sent(seen)?.json()).toEqual({
    prompt_set: "pst_1",
    candidate: 2,
    baseline: 1,
    max_tokens: 256,
  });
});

it("compares with the base model", async () => {
  const seen = serve({ [`POST ${BASE}/evaluations`]: { status: 202, body: evaluation } });
  open();
  await userEvent.click(await screen.findByRole("combobox", { name: "Against" }));
  await userEvent.click(await screen.findByRole("option", { name: "the base model" }));
  await userEvent.click(screen.getByRole("button", { name: "Start" }));
  await waitFor(() => expect(sent(seen)).toBeDefined());
  expect(await sent(seen)?.json()).toMatchObject({ candidate: 2, baseline: null });
});

it("says in the server's words why none was started", async () => {
  const refusal = { error: { message: "Three evaluations run already.", code: "x" } };
  serve({ [`POST ${BASE}/evaluations`]: { status: 409, body: refusal } });
  open();
  await userEvent.click(await screen.findByRole("button", { name: "Start" }));
  expect((await screen.findByRole("alert")).textContent).toContain(
    "Three evaluations run already.",
  );
});

it("keeps a set of prompts, one per line, and only when there are some", async () => {
  const seen = serve({ [`POST ${BASE}/prompt-sets`]: { status: 201, body: set } });
  open();
  await userEvent.click(await screen.findByRole("button", { name: "New prompt set" }));
  const dialog = await screen.findByRole("dialog");
  await userEvent.click(within(dialog).getByRole("button", { name: "Keep the set" }));
  expect(await within(dialog).findByText("Write at least one prompt")).toBeDefined();
  expect(sent(seen)).toBeUndefined();
  await userEvent.type(within(dialog).getByLabelText("Name"), "greetings");
  await userEvent.type(within(dialog).getByLabelText("Prompts"), "Ahoy?{enter}Who?");
  await userEvent.click(within(dialog).getByRole("button", { name: "Keep the set" }));
  await waitFor(() => expect(sent(seen)).toBeDefined());
  expect(await sent(seen)?.json()).toEqual({
    name: "greetings",
    prompts: ["Ahoy?", "Who?"].map((content) => ({ messages: [{ role: "user", content }] })),
  });
});

it("shows both answers to a prompt, whether they differ, pass, and what they took", async () => {
  serve();
  open("?evaluation=evl_1");
  const first = await screen.findByRole("article", { name: "Prompt 1" });
  expect(within(first).getByText("the answers differ")).toBeDefined();
  const judged = within(first).getByRole("group", { name: "Answer of version 2" });
  for (const text of ["Arr", "passed"]) expect(within(judged).getByText(text)).toBeDefined();
  expect(within(judged).getByText(/3 tokens · .*8 cached · 312 ms · \$0\.0000125/)).toBeDefined();
  const other = within(first).getByRole("group", { name: "Answer of version 1" });
  expect(within(other).getByText("not passed: contains")).toBeDefined();
  const second = screen.getByRole("article", { name: "Prompt 2" });
  expect(within(second).getByText("The prompt is too long.")).toBeDefined();
  expect(within(second).queryByText("the same answer")).toBeNull();
  expect(screen.getByLabelText("2 of 3 prompts are done")).toBeDefined();
});

it("shows only what differs, as the address says", async () => {
  serve();
  open("?evaluation=evl_1&show=differing");
  expect(await screen.findByRole("article", { name: "Prompt 1" })).toBeDefined();
  expect(screen.queryByRole("article", { name: "Prompt 2" })).toBeNull();
});

it("cancels once it has said what that costs", async () => {
  const seen = serve({ "POST /api/v1/evaluations/evl_1/cancel": { body: evaluation } });
  open("?evaluation=evl_1");
  await userEvent.click(await screen.findByRole("button", { name: "Cancel the evaluation" }));
  const dialog = await screen.findByRole("dialog");
  expect(within(dialog).getByText(/answers to 2 of 3 prompts stay, and are billed/)).toBeDefined();
  expect(sent(seen)).toBeUndefined();
  await userEvent.click(within(dialog).getByRole("button", { name: "Cancel the evaluation" }));
  await waitFor(() => expect(sent(seen)).toBeDefined());
});

it("lets a viewer read, and neither start nor cancel", async () => {
  serve();
  open("", "viewer");
  const name = "smoke: version 2 against version 1";
  await userEvent.click(await screen.findByRole("button", { name }));
  expect(await screen.findByRole("article", { name: "Prompt 1" })).toBeDefined();
  expect(screen.queryByRole("button", { name: /Cancel|Start|Delete/ })).toBeNull();
});

it("marks what the answers do not have in common", async () => {
  serve();
  open("?evaluation=evl_1");
  const first = await screen.findByRole("article", { name: "Prompt 1" });
  await waitFor(() => expect(first.querySelectorAll("mark").length).toBe(2));
  const marked = [...first.querySelectorAll("mark")].map((mark) => mark.textContent);
  expect(marked).toEqual(["Arr", "Hello"]);
});
