import { screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it } from "vitest";
import type { FullBatch } from "../api/types";
import { fakeServer } from "../test/fakeServer";
import { renderPage } from "../test/renderPage";
import { Component as BatchesPage } from "./BatchesPage";

const batch: FullBatch = {
  id: "batch_1",
  key_id: "key_1",
  key_name: "nightly",
  endpoint: "/v1/chat/completions",
  status: "in_progress",
  total: 10,
  completed: 3,
  failed: 1,
  prompt_tokens: 900,
  cached_tokens: 300,
  completion_tokens: 120,
  amount: "0.00012345",
  reserved: "0.5",
  created_at: "2026-03-01T10:00:00Z",
  in_progress_at: "2026-03-01T10:00:05Z",
  expires_at: "2026-03-02T10:00:00Z",
  ended_at: null,
  faults: [],
  input_file_id: "file_in",
  output_file_id: null,
  error_file_id: null,
  metadata: { run: "spring" },
};
const ended = { status: "completed" as const, ended_at: "2026-03-01T11:00:00Z" };

function serve(found: FullBatch, more: Parameters<typeof fakeServer>[0] = {}) {
  return fakeServer({
    "GET /api/v1/batches": { body: { data: [found], next: null } },
    "GET /api/v1/batches/batch_1": { body: found },
    ...more,
  });
}

it("lists lines, cost, endpoint, key and end of a batch", async () => {
  serve(batch);
  renderPage(<BatchesPage />);
  const row = await screen.findByRole("row", { name: /batch_1/ });
  for (const text of ["in progress", "3 of 10, 1 failed", "$0.000123", batch.endpoint, "nightly"]) {
    expect(within(row).getByText(text)).toBeDefined();
  }
});

it("asks the server for the status that the address names, and for none that is none", async () => {
  const seen = serve(batch);
  renderPage(<BatchesPage />, { path: "/batches?status=failed" });
  await screen.findByRole("row", { name: /batch_1/ });
  expect(new URL(seen[0]?.url ?? "").search).toBe("?status=failed");
});

it("does not send a status that there is not", async () => {
  const seen = serve(batch);
  renderPage(<BatchesPage />, { path: "/batches?status=toString" });
  await screen.findByRole("row", { name: /batch_1/ });
  expect(new URL(seen[0]?.url ?? "").search).toBe("");
});

it("shows how a first batch is made, and only where there is none at all", async () => {
  fakeServer({ "GET /api/v1/batches": { body: { data: [], next: null } } });
  const { unmount } = renderPage(<BatchesPage />);
  expect(await screen.findByText("No batches yet")).toBeDefined();
  expect(screen.getByText(/client\.batches\.create/).textContent).toContain(
    'base_url="http://127.0.0.1:8001/v1"',
  );
  unmount();
  renderPage(<BatchesPage />, { path: "/batches?status=failed" });
  expect(await screen.findByText("No batch has this status")).toBeDefined();
  expect(screen.queryByText(/client\.batches\.create/)).toBeNull();
});

it("cancels only after it has said what is kept and billed", async () => {
  const seen = serve(batch, { "POST /api/v1/batches/batch_1/cancel": { body: batch } });
  renderPage(<BatchesPage />);
  await userEvent.click(await screen.findByRole("button", { name: "batch_1" }));
  await userEvent.click(await screen.findByRole("button", { name: "Cancel the batch" }));
  const text = /finished is kept and billed: 4 of 10 lines, \$0\.000123 so far/;
  const dialog = (await screen.findByText(text)).closest<HTMLElement>("[role=dialog]");
  expect(seen.some(({ method }) => method === "POST")).toBe(false);
  await userEvent.click(
    within(dialog ?? document.body).getByRole("button", { name: "Cancel the batch" }),
  );
  await waitFor(() => expect(seen.some(({ method }) => method === "POST")).toBe(true));
});

it.each([
  ["viewer", batch],
  ["owner", { ...batch, ...ended }],
] as const)("offers a %s no cancelling that would be refused", async (role, found) => {
  serve(found);
  renderPage(<BatchesPage />, { role, path: "/batches?batch=batch_1" });
  expect(await screen.findByText(/run: spring/)).toBeDefined();
  expect(screen.queryByRole("button", { name: "Cancel the batch" })).toBeNull();
});

it("names the lines that are wrong, and where the failures are", async () => {
  const fault = { code: "invalid_line", message: "no object", line: 7, param: "body" };
  serve({ ...batch, ...ended, status: "failed", faults: [fault], error_file_id: "file_err" });
  renderPage(<BatchesPage />, { path: "/batches?batch=batch_1" });
  expect(await screen.findByRole("row", { name: "7 body no object invalid_line" })).toBeDefined();
  expect(screen.getByText(/\/v1\/files\/file_err\/content/)).toBeDefined();
});

it("says in the server's words what could not be read", async () => {
  const refusal = { status: 404, body: { error: { message: "There is no such batch." } } };
  serve(batch, { "GET /api/v1/batches/batch_1": refusal });
  renderPage(<BatchesPage />, { path: "/batches?batch=batch_1" });
  expect(await screen.findByText("There is no such batch.")).toBeDefined();
});

it("lists the lines that failed, each with why", async () => {
  const failure = {
    status: 400,
    code: "invalid_value",
    message: "temperature is 9: at most 2",
    param: "temperature",
  };
  const line = (number: number) => ({
    number,
    custom_id: `line-${number}`,
    state: "failed",
    attempts: 1,
    started_at: "2026-03-01T10:00:05Z",
    ended_at: "2026-03-01T10:00:06Z",
  });
  const seen = serve(batch, {
    "GET /api/v1/batches/batch_1/lines": (url) =>
      url.searchParams.has("cursor")
        ? { body: { data: [{ ...line(9), failure: null }], next: null } }
        : { body: { data: [{ ...line(4), failure }], next: "4" } },
  });
  renderPage(<BatchesPage />, { path: "/batches?batch=batch_1" });
  const lines = await screen.findByRole("region", { name: "Lines that failed" });
  const name = "4 line-4 temperature is 9: at most 2 temperature 400 invalid_value";
  expect(await within(lines).findByRole("row", { name })).toBeDefined();
  await userEvent.click(within(lines).getByRole("button", { name: "Show more" }));
  const old = await within(lines).findByRole("row", { name: /line-9/ });
  expect(within(old).getByText("See the file of failures.")).toBeDefined();
  const asked = seen.find(({ url }) => url.includes("/lines"));
  expect(new URL(asked?.url ?? "").searchParams.get("state")).toBe("failed");
});
