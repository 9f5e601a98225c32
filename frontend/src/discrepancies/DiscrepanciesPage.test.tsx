import { screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it, vi } from "vitest";
import { fakeServer } from "../test/fakeServer";
import { renderPage } from "../test/renderPage";
import { Component as DiscrepanciesPage } from "./DiscrepanciesPage";

const open = {
  id: 1,
  kind: "usage_differs",
  request_id: "req_1",
  details: { journal: 12, event: 11 },
  opened_at: "2026-03-01T10:00:00Z",
  resolved_at: null,
  resolved_by: null,
  note: null,
};
const closed = {
  ...open,
  id: 2,
  request_id: "req_2",
  resolved_at: "2026-03-02T10:00:00Z",
  note: "a test",
};

function serve(data: unknown[]) {
  return fakeServer({
    "GET /api/v1/operator/discrepancies": { body: { data, next: null } },
    "POST /api/v1/operator/discrepancies/1/resolve": { body: { ...open, resolved_at: "x" } },
  });
}

it("shows what is open, and takes a reason to close it", async () => {
  const seen = serve([open, closed]);
  renderPage(<DiscrepanciesPage />);
  expect(await screen.findByText("usage differs")).toBeDefined();
  expect(screen.getByText("journal: 12, event: 11")).toBeDefined();
  expect(screen.queryByText("req_2")).toBeNull();
  await userEvent.click(screen.getByRole("button", { name: "Resolve" }));
  const dialog = await screen.findByRole("dialog");
  const submit = dialog.querySelector<HTMLButtonElement>("button[type=submit]");
  if (!submit) throw new Error("no submit button");
  await userEvent.click(submit);
  expect(await screen.findByText("Say what it was and what was done")).toBeDefined();
  await userEvent.type(screen.getByLabelText("What was found and done"), "counted twice");
  await userEvent.click(submit);
  await vi.waitFor(() => expect(seen.some(({ method }) => method === "POST")).toBe(true));
  const sent = seen.find(({ method }) => method === "POST");
  expect(await sent?.json()).toEqual({ note: "counted twice" });
});

it("shows the closed ones with their reason where they are asked for", async () => {
  serve([open, closed]);
  renderPage(<DiscrepanciesPage />, { path: "/discrepancies?show=all" });
  expect(await screen.findByText("a test")).toBeDefined();
});

it("says that nothing is open", async () => {
  serve([closed]);
  renderPage(<DiscrepanciesPage />);
  expect(await screen.findByText("Nothing is open")).toBeDefined();
});
