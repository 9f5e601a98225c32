import { screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it } from "vitest";
import { fakeServer } from "../test/fakeServer";
import { renderPage } from "../test/renderPage";
import { aKey, aUsage, someNumbers } from "../test/samples";
import { Component as KeysPage } from "./KeysPage";

const key = aKey();
const limits = {
  requests_per_minute: 60,
  tokens_per_minute: null,
  tokens_per_day: null,
  tokens_per_month: null,
  concurrency: null,
  monthly_budget: null,
  total_budget: "5",
  soft_budget: null,
  spent: "1.25",
  held: "0",
};

function serve(more: Parameters<typeof fakeServer>[0] = {}) {
  const used = { group: "key_1", label: "ci", ...someNumbers({ amount: "2.5", requests: 3 }) };
  return fakeServer({
    "GET /api/v1/keys": { body: { data: [key], next: null } },
    "GET /api/v1/usage": { body: aUsage({ data: [used] }) },
    "GET /api/v1/adapters": { body: { data: [], next: null } },
    "GET /api/v1/keys/key_1/limits": { body: limits },
    ...more,
  });
}

it("shows what each key has used, and leads to it", async () => {
  serve();
  renderPage(<KeysPage />);
  const row = await screen.findByRole("row", { name: /ci/ });
  const used = await within(row).findByRole("link", { name: "Usage of ci this month: $2.50" });
  expect(used.getAttribute("href")).toBe("/usage?range=month&by=key&only=key_1");
  expect(within(row).getByText("3 requests")).toBeDefined();
});

it("sets the budget with the key, and shows the key even where that failed", async () => {
  const seen = serve({
    "POST /api/v1/keys": { status: 201, body: { ...key, key: "vnr_abc_secret" } },
    "PUT /api/v1/keys/key_1/limits": {
      status: 503,
      body: { error: { message: "The database is away." } },
    },
  });
  renderPage(<KeysPage />);
  await userEvent.click(await screen.findByRole("button", { name: "Issue a key" }));
  const dialog = await screen.findByRole("dialog");
  await userEvent.type(within(dialog).getByLabelText("Name"), "ci");
  await userEvent.type(within(dialog).getByLabelText("Monthly budget"), "2.50");
  await userEvent.click(within(dialog).getByRole("button", { name: "Issue the key" }));
  expect(await within(dialog).findByText("vnr_abc_secret")).toBeDefined();
  expect(within(dialog).getByText(/The database is away. Set it under Limits/)).toBeDefined();
  const post = seen.find(({ method }) => method === "POST");
  expect(await post?.json()).not.toHaveProperty("monthly_budget");
  const put = seen.find(({ method }) => method === "PUT");
  expect(await put?.json()).toEqual({ monthly_budget: "2.50" });
});

it("changes a key's limits", async () => {
  const seen = serve({ "PUT /api/v1/keys/key_1/limits": { body: limits } });
  renderPage(<KeysPage />);
  await userEvent.click(await screen.findByLabelText("Actions for ci"));
  await userEvent.click(await screen.findByRole("menuitem", { name: "Limits" }));
  const dialog = await screen.findByRole("dialog");
  expect(await within(dialog).findByText(/\$1.25/)).toBeDefined();
  await userEvent.clear(within(dialog).getByLabelText("Budget"));
  await userEvent.type(within(dialog).getByLabelText("Budget"), "7.5");
  await userEvent.click(within(dialog).getByRole("button", { name: "Save" }));
  const put = seen.find(({ method }) => method === "PUT");
  expect(await put?.json()).toEqual({
    requests_per_minute: 60,
    tokens_per_minute: null,
    tokens_per_day: null,
    tokens_per_month: null,
    concurrency: null,
    total_budget: "7.5",
    soft_budget: null,
  });
});
