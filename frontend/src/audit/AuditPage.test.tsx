import { screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it, vi } from "vitest";
import { saveFile } from "../shared/saveFile";
import { fakeServer } from "../test/fakeServer";
import { renderPage } from "../test/renderPage";
import { Component as AuditPage } from "./AuditPage";
import { deedWords, detailWords } from "./words";

vi.mock("../shared/saveFile", () => ({ saveFile: vi.fn() }));

const row = (id: number, action: string) => ({
  id,
  at: "2026-03-01T10:00:00Z",
  tenant_id: "ten_1",
  actor: "usr_1",
  actor_name: "ada@acme.example",
  action,
  target: `key_${id}`,
  details: { name: "ci", scopes: ["inference"] },
});

it("shows who did what to what, and goes on to older ones", async () => {
  fakeServer({
    "GET /api/v1/audit": (url) =>
      url.searchParams.get("cursor")
        ? { body: { data: [row(1, "key.issue")], next: null } }
        : { body: { data: [row(2, "key.revoke")], next: "older" } },
  });
  renderPage(<AuditPage />);
  expect(await screen.findByText("revoked a key")).toBeDefined();
  expect(screen.getByText("ada@acme.example")).toBeDefined();
  expect(screen.getByText("name: ci, scopes: inference")).toBeDefined();
  await userEvent.click(screen.getByRole("button", { name: "Show more" }));
  expect(await screen.findByText("issued a key")).toBeDefined();
  expect(screen.queryByRole("button", { name: "Show more" })).toBeNull();
});

it("asks for what the address names, and exports the same", async () => {
  const seen = fakeServer({
    "GET /api/v1/audit": { body: { data: [], next: null } },
    "GET /api/v1/audit/export": { body: "at,actor" },
  });
  renderPage(<AuditPage />, { path: "/audit?action=key.&target=key_7" });
  expect(await screen.findByText("Nothing of that kind yet")).toBeDefined();
  await userEvent.click(screen.getByRole("button", { name: "Export as CSV" }));
  await vi.waitFor(() => expect(saveFile).toHaveBeenCalledWith("audit.csv", expect.anything()));
  expect(seen).toHaveLength(2);
  for (const request of seen) {
    const asked = Object.fromEntries(new URL(request.url).searchParams);
    expect(asked).toEqual({ action: "key.", target: "key_7" });
  }
});

it("says what it has no words for as the server does", () => {
  expect(deedWords("moon.land")).toBe("moon.land");
  expect(detailWords({})).toBe("");
  const details = {
    tokens_per_day: 100,
    soft_budget: null,
    scopes: ["inference", "manage"],
    models: [],
    hidden: true,
  };
  expect(detailWords(details)).toBe(
    "tokens per day: 100, soft budget: not set, scopes: inference and manage, models: none, hidden: yes",
  );
  const amounts = {
    reserved: "0.012876000000",
    lines: "0E-12",
    whole: "12.000000",
    key: "100",
    usage: { n: "1.50" },
  };
  expect(detailWords(amounts)).toBe(
    "reserved: 0.012876, lines: 0, whole: 12, key: 100, usage: (n: 1.5)",
  );
});
