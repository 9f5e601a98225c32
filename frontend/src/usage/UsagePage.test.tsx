import { screen, within } from "@testing-library/react";
import { expect, it } from "vitest";
import { fakeServer } from "../test/fakeServer";
import { renderPage } from "../test/renderPage";
import { aUsage, someNumbers } from "../test/samples";
import { Component as UsagePage } from "./UsagePage";

const balance = {
  body: {
    spent_this_period: "1.5",
    budget: "20",
    budget_period: "month",
    held: "0",
    owed: "1.5",
    credit: "0",
  },
};
const timeseries = { body: { step: "day", data: [] } };

function serveUsage(usage: object) {
  return fakeServer({
    "GET /api/v1/usage": { body: usage },
    "GET /api/v1/usage/timeseries": timeseries,
    "GET /api/v1/balance": balance,
  });
}

it("shows spend, tokens, and the price beside the true cost of a million", async () => {
  const seen = serveUsage(aUsage());
  renderPage(<UsagePage />);
  const spend = await screen.findByRole("region", { name: "Spend" });
  expect(within(spend).getByText("$0.000912")).toBeDefined();
  expect(await within(spend).findByText("this month $1.50 of $20.00")).toBeDefined();
  const perMillion = screen.getByRole("region", { name: "Per 1M tokens" });
  expect(within(perMillion).getByText("$0.456")).toBeDefined();
  expect(within(perMillion).getByText("$0.403")).toBeDefined();
  expect(within(screen.getByRole("region", { name: "Tokens" })).getByText("2,000")).toBeDefined();
  expect(seen[0]?.headers.get("X-Veneer-Tenant")).toBe("ten_1");
});

it("says what to do where nothing was used", async () => {
  serveUsage(aUsage({ data: [], total: someNumbers({ requests: 0, amount_per_1m: null }) }));
  renderPage(<UsagePage />);
  expect(await screen.findByText("No requests in this time")).toBeDefined();
});

it("shows the server's sentence when the numbers cannot be read", async () => {
  fakeServer({
    "GET /api/v1/usage": { status: 400, body: { error: { message: "from must lie before to" } } },
  });
  renderPage(<UsagePage />);
  expect(await screen.findByText("from must lie before to")).toBeDefined();
});

it("asks for what the address names", async () => {
  const seen = serveUsage(aUsage());
  renderPage(<UsagePage />, {
    path: "/usage?range=custom&first=2026-03-01&last=2026-03-02&by=key",
  });
  await screen.findByRole("region", { name: "Spend" });
  const asked = new URL(seen[0]?.url ?? "").searchParams;
  expect(Object.fromEntries(asked)).toEqual({
    from: "2026-03-01T00:00:00.000Z",
    to: "2026-03-03T00:00:00.000Z",
    group_by: "key",
    tz: "UTC",
  });
});
