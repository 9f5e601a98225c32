import { screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it } from "vitest";
import type { Level } from "../api/types";
import { fakeServer } from "../test/fakeServer";
import { renderPage } from "../test/renderPage";
import { anAdapter } from "../test/samples";
import { changesOf, valuesOf } from "./form";
import { Component as LimitsPage } from "./LimitsPage";
import { resetWords, shares } from "./words";

const NO_LIMITS = {
  requests_per_minute: null,
  tokens_per_minute: null,
  tokens_per_day: null,
  tokens_per_month: null,
  concurrency: null,
  monthly_budget: null,
  total_budget: null,
  soft_budget: null,
};
const none = { ...NO_LIMITS, spent: "0", held: "0", uses: [] };
const account: Level = { ...none, level: "tenant", id: "ten_1", label: "Acme" };
const key: Level = {
  ...none,
  level: "key",
  id: "key_1",
  label: "ci",
  monthly_budget: "10",
  concurrency: 4,
  uses: [
    {
      kind: "concurrency",
      unit: "requests",
      limit: "4",
      used: "0",
      reserved: "1",
      left: "3",
      resets_in: null,
      binds: false,
    },
    {
      kind: "monthly_budget",
      unit: "money",
      limit: "10",
      used: "7.5",
      reserved: "1.25",
      left: "1.25",
      resets_in: 200_000,
      binds: true,
    },
  ],
};

function serve(levels: Level[]) {
  return fakeServer({
    "GET /api/v1/limits": { body: { data: levels } },
    "GET /api/v1/adapters": { body: { data: [anAdapter()], next: null } },
    "GET /api/v1/keys/key_1/limits": { body: key },
    "PUT /api/v1/keys/key_1/limits": { body: key },
    "GET /api/v1/adapters/adp_1/limits": { body: none },
    "PUT /api/v1/adapters/adp_1/limits": { body: none },
  });
}

it("shows per level what is spent, reserved and left, and what binds first", async () => {
  serve([account, key]);
  renderPage(<LimitsPage />);
  const card = await screen.findByRole("region", { name: "Limits of ci" });
  const row = within(card).getByRole("row", { name: /Budget of this month/ });
  for (const text of ["$7.50", "$10.00", "binds first", "in 3 days"]) {
    expect(within(row).getByText(text)).toBeDefined();
  }
  expect(within(row).getAllByText("$1.25").length).toBe(2);
  expect(within(row).getByLabelText(/88% used or reserved/)).toBeDefined();
  expect(within(card).getAllByText("binds first").length).toBe(1);
  const own = screen.getByRole("region", { name: "Limits of Acme" });
  expect(within(own).getByText("Nothing is limited here.")).toBeDefined();
  expect(within(own).queryByRole("button")).toBeNull();
});

it("changes the limits of a key, and shows why the server refuses", async () => {
  const seen = serve([account, key]);
  renderPage(<LimitsPage />, { role: "developer" });
  await userEvent.click(await screen.findByRole("button", { name: "Change the limits of ci" }));
  const dialog = await screen.findByRole("dialog");
  await userEvent.clear(await within(dialog).findByLabelText("Budget"));
  await userEvent.type(within(dialog).getByLabelText("Soft budget"), "2.x");
  await userEvent.click(within(dialog).getByRole("button", { name: "Save" }));
  expect(await within(dialog).findByText(/Use an amount/)).toBeDefined();
  await userEvent.clear(within(dialog).getByLabelText("Soft budget"));
  await userEvent.type(within(dialog).getByLabelText("Soft budget"), "2.5");
  await userEvent.click(within(dialog).getByRole("button", { name: "Save" }));
  await waitFor(() => expect(seen.some(({ method }) => method === "PUT")).toBe(true));
  const sent = await seen.find(({ method }) => method === "PUT")?.json();
  expect(sent).toMatchObject({ monthly_budget: null, soft_budget: "2.5", concurrency: 4 });
});

it("sets the first limits of an adapter", async () => {
  const seen = serve([account]);
  renderPage(<LimitsPage />);
  expect(await screen.findByText("Nothing is limited")).toBeDefined();
  await userEvent.click(screen.getByRole("button", { name: "Set limits" }));
  await userEvent.click(await screen.findByRole("combobox", { name: "Limit" }));
  await userEvent.click(await screen.findByRole("option", { name: "An adapter" }));
  await userEvent.click(await screen.findByRole("combobox", { name: "Which one" }));
  await userEvent.click(await screen.findByRole("option", { name: "pirate" }));
  const dialog = await screen.findByRole("dialog", { name: "Limits of pirate" });
  await userEvent.type(await within(dialog).findByLabelText("Tokens per month (UTC)"), "5000");
  await userEvent.click(within(dialog).getByRole("button", { name: "Save" }));
  await waitFor(() => expect(seen.some(({ method }) => method === "PUT")).toBe(true));
  const sent = await seen.find(({ method }) => method === "PUT")?.json();
  expect(sent).toMatchObject({ tokens_per_month: 5000, monthly_budget: null });
});

it("lets a viewer look and not touch", async () => {
  serve([account, key]);
  renderPage(<LimitsPage />, { role: "viewer" });
  expect(await screen.findByRole("region", { name: "Limits of ci" })).toBeDefined();
  expect(screen.queryByRole("button", { name: /limits/i })).toBeNull();
});

it("shows the levels of the name that the address has", async () => {
  serve([account, key]);
  renderPage(<LimitsPage />, { path: "/limits?q=CI" });
  expect(await screen.findByRole("region", { name: "Limits of ci" })).toBeDefined();
  expect(screen.queryByRole("region", { name: "Limits of Acme" })).toBeNull();
  await userEvent.type(screen.getByRole("searchbox", { name: "Search by name" }), "x");
  expect(await screen.findByText("Nothing of this name has limits.")).toBeDefined();
});

it("says when the limits cannot be read, and reads them again", async () => {
  fakeServer({ "GET /api/v1/limits": { status: 500, body: { error: { message: "broken" } } } });
  renderPage(<LimitsPage />);
  expect(await screen.findByText("The limits could not be read")).toBeDefined();
  serve([account, key]);
  await userEvent.click(screen.getByRole("button", { name: /again/i }));
  expect(await screen.findByRole("region", { name: "Limits of ci" })).toBeDefined();
});

it("keeps the one kind of budget there is", () => {
  const total = { ...NO_LIMITS, total_budget: "7" };
  expect(changesOf(valuesOf(total), "key")).toMatchObject({ total_budget: "7" });
  expect(changesOf(valuesOf(total), "key")).not.toHaveProperty("monthly_budget");
  const monthly = { ...valuesOf(total), period: "month" as const };
  expect(changesOf(monthly, "key")).not.toHaveProperty("total_budget");
});

it.each([
  [null, ""],
  [1, "in 1 s"],
  [61, "in 2 min"],
  [3_601, "in 2 h"],
  [86_401, "in 2 days"],
])("says when %s seconds are over", (seconds, words) => {
  expect(resetWords(seconds)).toBe(words);
});

it("shows a budget of nothing as used up, and not that nothing may be owed", () => {
  const [budget] = key.uses.slice(1).map((use) => ({ ...use, limit: "0", used: "0" }));
  if (!budget) throw new Error("no budget");
  expect(shares(budget).used).toBe(100);
  expect(shares({ ...budget, kind: "postpaid_limit" })).toEqual({ used: 0, reserved: 0 });
});

it("says what an account may owe only of an account", () => {
  const account = { ...NO_LIMITS, postpaid_limit: "50", tenant_weight: "2.00" };
  expect(changesOf(valuesOf(account), "tenant")).toMatchObject({
    postpaid_limit: "50",
    tenant_weight: "2",
  });
  const ofKey = changesOf(valuesOf(NO_LIMITS), "key");
  expect(ofKey).not.toHaveProperty("postpaid_limit");
  expect(ofKey).not.toHaveProperty("tenant_weight");
});
