import { screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it } from "vitest";
import type { Usage } from "../api/types";
import { fakeServer } from "../test/fakeServer";
import { renderPage } from "../test/renderPage";
import { aGeneration, aUsage, someNumbers } from "../test/samples";
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
const span = { from: "2026-03-01T00:00:00Z", to: "2026-03-08T00:00:00Z", tz: "UTC" };
const parts = {
  input: "0.0003",
  cached_input: "0.000012345678",
  output: "0.0005",
  surcharge: "0.0001",
  markup: "0",
  amount: "0.000912345678",
  cache_savings: "0.00004",
};

function serveUsage(usage: Usage | ((url: URL) => { body: Usage })) {
  const generation = aGeneration();
  return fakeServer({
    "GET /api/v1/usage": typeof usage === "function" ? usage : { body: usage },
    "GET /api/v1/usage/timeseries": { body: { step: "day", tz: "UTC", data: [] } },
    "GET /api/v1/usage/composition": { body: { ...span, ...parts } },
    "GET /api/v1/usage/generations": { body: { data: [generation], next: null } },
    "GET /api/v1/usage/generations/req_1": {
      body: {
        ...generation,
        rates: { price_id: "prc_1", input: "0.5", cached_input: "0.1", output: "1" },
        parts: { ...parts, amount: generation.amount },
        booked_at: "2026-03-02T10:00:03Z",
        late: false,
      },
    },
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

it("shows what the spend is made of, to the last digit", async () => {
  serveUsage(aUsage());
  renderPage(<UsagePage />);
  const region = await screen.findByRole("region", { name: "What the spend is made of" });
  for (const text of ["$0.0003", "$0.000012345678", "$0.0005", "$0.0001"]) {
    expect(within(region).getByText(text)).toBeDefined();
  }
  expect(within(region).getByText("$0.0000400")).toBeDefined();
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
    path: "/usage?range=custom&first=2026-03-01&last=2026-03-02&by=key&tz=Asia/Kolkata&only=key_1",
  });
  await screen.findByRole("region", { name: "Spend" });
  const asked = new URL(seen[0]?.url ?? "").searchParams;
  expect(Object.fromEntries(asked)).toEqual({
    from: "2026-03-01T00:00",
    to: "2026-03-03T00:00",
    tz: "Asia/Kolkata",
    key: "key_1",
    group_by: "key",
  });
});

it("stands the time before beside each number", async () => {
  serveUsage((url) => {
    const isNow = url.searchParams.get("from") === "2026-03-03T00:00";
    const numbers = someNumbers({ amount: isNow ? "1.5" : "1" });
    return {
      body: aUsage({ data: [{ group: "a", label: "pirate", ...numbers }], total: numbers }),
    };
  });
  renderPage(<UsagePage />, {
    path: "/usage?range=custom&first=2026-03-03&last=2026-03-04&compare=1&tz=UTC",
  });
  const spend = await screen.findByRole("region", { name: "Spend" });
  expect(await within(spend).findByText("+50%, before $1.00")).toBeDefined();
  const table = screen.getByRole("region", { name: "Usage table" });
  expect(within(table).getAllByText("$1.00", { exact: false })).toHaveLength(2);
});

it("goes down to the single generation", async () => {
  serveUsage(aUsage());
  renderPage(<UsagePage />);
  await userEvent.click(await screen.findByRole("button", { name: "Show generation req_1" }));
  const dialog = await screen.findByRole("dialog");
  expect(await within(dialog).findByText("pirate@2")).toBeDefined();
  expect(within(dialog).getByText("after 312 ms")).toBeDefined();
  expect(within(dialog).getByText("$0.000012345678")).toBeDefined();
});

it("shows who used what to those alone who may see the members", async () => {
  serveUsage(aUsage());
  renderPage(<UsagePage />, { role: "viewer" });
  await screen.findByRole("region", { name: "Spend" });
  await userEvent.click(screen.getByRole("combobox", { name: "Split by" }));
  expect(await screen.findByText("By model version")).toBeDefined();
  expect(screen.queryByText("By member")).toBeNull();
});
