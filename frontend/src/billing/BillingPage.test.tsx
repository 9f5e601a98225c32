import { screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it, vi } from "vitest";
import { saveFile } from "../shared/saveFile";
import { fakeServer } from "../test/fakeServer";
import { renderPage } from "../test/renderPage";
import { anInvoice } from "../test/samples";
import { Component as BillingPage } from "./BillingPage";

vi.mock("../shared/saveFile", () => ({ saveFile: vi.fn() }));

const balance = {
  spent_this_period: "17.25",
  budget: "20",
  budget_period: "month",
  held: "0.5",
  owed: "16.75",
  credit: "0",
};
const invoice = anInvoice({ id: "inv_1", number: "V-000007" });
const line = {
  kind: "usage",
  label: "pirate",
  adapter_id: "adp_1",
  price_id: "prc_1",
  requests: 12,
  prompt_tokens: 3400,
  cached_tokens: 1000,
  completion_tokens: 560,
  exact: "12.340000000001",
  amount: "12.34",
};
const party = { name: "Acme", address: "", tax_id: "" };
const full = {
  ...invoice,
  time_zone: "Europe/Berlin",
  seller: party,
  buyer: party,
  lines: [line],
  entries: [
    {
      id: "ent_1",
      kind: "payment",
      number: null,
      amount: "-10.00",
      tax: "0",
      reason: "bank transfer",
      reference: "TX9",
      created_at: "2026-03-05T00:00:00Z",
    },
  ],
};

function serve(invoices: unknown[]) {
  return fakeServer({
    "GET /api/v1/balance": { body: balance },
    "GET /api/v1/invoices": { body: { data: invoices, next: null } },
    "GET /api/v1/payments": { body: { data: [], next: null } },
    "GET /api/v1/payments/options": { body: { available: false, minimum: "1", maximum: "50000" } },
    "GET /api/v1/invoices/inv_1": { body: full },
    "GET /api/v1/invoices/inv_1/pdf": { body: "%PDF" },
  });
}

it("shows what is spent, owed and still open", async () => {
  serve([invoice]);
  renderPage(<BillingPage />);
  const spent = await screen.findByRole("region", { name: "Spent this month" });
  expect(within(spent).getByText("$17.25")).toBeDefined();
  expect(within(spent).getByLabelText("86% of the budget is spent")).toBeDefined();
  const row = await screen.findByRole("row", { name: /V-000007/ });
  expect(within(row).getByText("overdue")).toBeDefined();
  expect(within(row).getByText("$4.68")).toBeDefined();
});

it("opens an invoice whose lines add up to its total, and saves it", async () => {
  serve([invoice]);
  renderPage(<BillingPage />);
  await userEvent.click(await screen.findByRole("button", { name: "Show V-000007" }));
  const dialog = await screen.findByRole("dialog");
  expect(await within(dialog).findByText("pirate")).toBeDefined();
  expect(within(dialog).getByText("VAT 19%")).toBeDefined();
  expect(within(dialog).getByText("bank transfer")).toBeDefined();
  await userEvent.keyboard("{Escape}");
  await userEvent.click(screen.getByRole("button", { name: "Save V-000007 as PDF" }));
  await vi.waitFor(() => expect(saveFile).toHaveBeenCalledWith("V-000007.pdf", expect.anything()));
});

it("says when the first invoice comes", async () => {
  serve([]);
  renderPage(<BillingPage />);
  expect(await screen.findByText("No invoice yet")).toBeDefined();
});
