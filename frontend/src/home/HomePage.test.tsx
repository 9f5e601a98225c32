import { screen, within } from "@testing-library/react";
import { expect, it } from "vitest";
import type { ApiKey, NearLimit } from "../api/types";
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
const near: NearLimit = {
  level: "key",
  id: "key_1",
  label: "ci & more",
  kind: "monthly_budget",
  unit: "money",
  limit: "20",
  used: "17",
  reserved: "0.5",
  left: "2.5",
  resets_in: 200_000,
};
const credit = {
  id: "grt_1",
  amount: "20",
  remaining: "12",
  kind: "promo" as const,
  reference: "r",
  expires_at: "2026-03-10T12:00:00Z",
  created_at: "2026-03-01T00:00:00Z",
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
    "GET /api/v1/limits/near": { body: { data: [near] } },
    "GET /api/v1/grants": { body: { data: [{ ...credit, expires_at: null }], next: null } },
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
  const matter = "The API key ci & more has $2.50 left of this month's budget of $20.00.";
  expect(await screen.findByText(matter)).toBeDefined();
  expect(screen.getByRole("link", { name: "Look at it" }).getAttribute("href")).toBe(
    "/limits?q=ci%20%26%20more",
  );
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
    "The API key ci expires in 2 days.",
  ]);
});

const tokens = { kind: "tokens_per_day", unit: "tokens", limit: "20000" } as const;
const account = { level: "tenant", id: "ten_1", label: "Acme" } as const;

it.each<[Partial<NearLimit>, string, string]>([
  [
    { left: "0", level: "member", label: "ann@acme.test" },
    "ann@acme.test has used up this month's budget of $20.00: requests are refused. All of it is there again in 2 days.",
    "/limits?q=ann%40acme.test",
  ],
  [
    { ...tokens, left: "1500", level: "adapter", label: "pirate" },
    "The adapter pirate has 1,500 left of today's 20K tokens.",
    "/limits?q=pirate",
  ],
  [
    { ...account, ...tokens, kind: "tokens_per_month", left: "0" },
    "The account has used up this month's 20K tokens: requests are refused. All of it is there again in 2 days.",
    "/limits",
  ],
  [
    { ...account, kind: "soft_budget", left: "0" },
    "The account has reached the soft budget of $20.00.",
    "/limits",
  ],
  [
    { ...account, kind: "total_budget", left: "0", resets_in: null },
    "The account has used up the budget of $20.00: requests are refused.",
    "/limits",
  ],
  [
    { ...account, kind: "postpaid_limit", resets_in: null },
    "The account has $2.50 left of the $20.00 that may be owed.",
    "/billing",
  ],
  [
    { ...account, kind: "credit", left: "0", resets_in: null },
    "The account has used up the credit of $20.00.",
    "/billing",
  ],
  [
    { ...account, kind: "credit", limit: "0", left: "0", resets_in: null },
    "The account has no credit, and nothing may be owed: requests are refused.",
    "/billing",
  ],
])("says of %j what is left, and where it is mended", (fields, text, to) => {
  const [matter] = mattersOf({ near: [{ ...near, ...fields }] }, NOW);
  expect(matter).toMatchObject({ text, to });
  expect(Boolean(matter?.isUrgent)).toBe(text.includes("refused"));
});

it("shows the worst limits, and that there are others", () => {
  const many = Array.from({ length: 9 }, (_, at) => ({ ...near, label: `key ${at}` }));
  const matters = mattersOf({ near: many }, NOW);
  expect(matters).toHaveLength(7);
  expect(matters[0]?.text).toContain("key 0");
  expect(matters[6]).toEqual({ text: "Other limits are near their end, too.", to: "/limits" });
  expect(mattersOf({ near: many.slice(0, 6) }, NOW)).toHaveLength(6);
});

it("tells of credit that ends within a week, while there is some", () => {
  const text = "$12.00 of credit, less this month's use, expires in 2 days.";
  expect(mattersOf({ credits: [credit] }, NOW)).toEqual([{ text, to: "/billing" }]);
  const others = [
    { ...credit, remaining: "0.000000" },
    { ...credit, expires_at: null },
    { ...credit, expires_at: "2026-03-08T11:00:00Z" },
    { ...credit, expires_at: "2026-03-16T12:00:00Z" },
  ];
  expect(mattersOf({ credits: others }, NOW)).toEqual([]);
});

it("asks for credit only on behalf of those who may see it", async () => {
  const seen = serve([key]);
  renderPage(<HomePage />, { role: "viewer" });
  expect(await screen.findByText(/^The API key ci & more has/)).toBeDefined();
  expect(seen.some(({ url }) => url.includes("/grants"))).toBe(false);
});

it("says what could not be read", async () => {
  fakeServer({
    "GET /api/v1/adapters": { body: { data: [], next: null } },
    "GET /api/v1/keys": { body: { data: [], next: null } },
    "GET /api/v1/limits/near": { status: 500, body: { error: { message: "broken" } } },
    "GET /api/v1/grants": { body: { data: [], next: null } },
  });
  renderPage(<HomePage />);
  expect(await screen.findByText("A part of this could not be read")).toBeDefined();
  expect(screen.queryByText(/^Nothing\./)).toBeNull();
});
