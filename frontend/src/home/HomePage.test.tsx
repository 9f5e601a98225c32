import { screen, within } from "@testing-library/react";
import { expect, it } from "vitest";
import type { ApiKey } from "../api/types";
import { changeWords } from "../shared/change";
import { fakeServer } from "../test/fakeServer";
import { renderPage } from "../test/renderPage";
import { aKey, anAdapter, aUsage, aVersion, someNumbers } from "../test/samples";
import { viewerZone, wallClock } from "../usage/zone";
import { mattersOf } from "./attention";
import { Component as HomePage } from "./HomePage";

const key = aKey();
const balance = {
  spent_this_period: "17",
  budget: "20",
  budget_period: "month" as const,
  held: "0",
  owed: "17",
  credit: "0",
};
const NOW = Date.parse("2026-03-08T12:00:00Z");

/** This month's span begins with this month. */
function isThisMonth(url: URL): boolean {
  return (
    url.searchParams.get("from")?.slice(0, 7) === wallClock(new Date(), viewerZone()).slice(0, 7)
  );
}

function serve(keys: ApiKey[]) {
  const span = { from: "2026-03-01T00:00:00Z", to: "2026-03-08T00:00:00Z", tz: "UTC" };
  return fakeServer({
    "GET /api/v1/usage": (url) => {
      const amount = isThisMonth(url) ? "1.5" : "1";
      return { body: aUsage({ total: someNumbers({ amount }) }) };
    },
    "GET /api/v1/usage/latency": (url) => {
      const ttft_ms = { p50: 210, p95: isThisMonth(url) ? 640 : 800 };
      return { body: { ...span, answers: 3, ttft_ms, itl_ms: null } };
    },
    "GET /api/v1/balance": { body: balance },
    "GET /api/v1/adapters": { body: { data: [anAdapter()], next: null } },
    "GET /api/v1/keys": { body: { data: keys, next: null } },
  });
}

it("shows the month beside the one before, what needs a look, and the next step", async () => {
  serve([key]);
  renderPage(<HomePage />);
  const spend = await screen.findByRole("region", { name: "Spend" });
  expect(within(spend).getByText("$1.50")).toBeDefined();
  expect(await within(spend).findByText("+50%, before $1.00")).toBeDefined();
  expect(await screen.findByText("$17.00 of the budget of $20.00 is spent.")).toBeDefined();
  expect(screen.getByRole("link", { name: "Call a model with it" })).toBeDefined();
  expect(screen.queryByRole("link", { name: "Issue an API key" })).toBeNull();
});

it("needs no first steps once a key is in use, and shows none to those who cannot take them", async () => {
  serve([{ ...key, last_used_at: "2026-03-02T00:00:00Z" }]);
  renderPage(<HomePage />);
  expect(await screen.findByText("Needs attention")).toBeDefined();
  expect(screen.queryByText("First steps")).toBeNull();
});

it("shows how fast answers were, and says so where nothing tells", async () => {
  serve([key]);
  renderPage(<HomePage />);
  const first = await screen.findByRole("region", { name: "First token, p95" });
  expect(within(first).getByText("640 ms")).toBeDefined();
  expect(await within(first).findByText("-20%, before 800 ms")).toBeDefined();
  const between = screen.getByRole("region", { name: "Between tokens, p50" });
  expect(within(between).getByText("–")).toBeDefined();
});

it("compares in words", () => {
  expect([changeWords(3, 2), changeWords(1, 2), changeWords(2, 2), changeWords(1, 0)]).toEqual([
    "+50%",
    "-50%",
    "as before",
    null,
  ]);
});

it("names only what needs a look", () => {
  expect(mattersOf({ balance: { ...balance, spent_this_period: "15.99" } })).toEqual([]);
  expect(mattersOf({ balance: { ...balance, budget: null } })).toEqual([]);
  const rejected = anAdapter({
    versions: [aVersion({ number: 2, state: "rejected" }), aVersion({ number: 1 })],
  });
  const mended = anAdapter({
    versions: [aVersion({ number: 1, state: "rejected" }), aVersion({ number: 2 })],
  });
  expect(mattersOf({ adapters: [rejected, mended] }).map(({ text }) => text)).toEqual([
    "pirate version 2 was rejected by the check.",
  ]);
  const expiring = [
    { ...key, expires_at: "2026-03-10T12:00:00Z" },
    { ...key, expires_at: "2026-03-20T12:00:00Z" },
    { ...key, expires_at: "2026-03-08T11:00:00Z" },
    { ...key, expires_at: "2026-03-10T12:00:00Z", revoked_at: "2026-03-01T00:00:00Z" },
  ];
  expect(mattersOf({ keys: expiring }, NOW).map(({ text }) => text)).toEqual([
    "The key ci expires in 2 days.",
  ]);
});
