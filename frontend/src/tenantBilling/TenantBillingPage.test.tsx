import { screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { Route, Routes } from "react-router";
import { expect, it } from "vitest";
import { fakeServer } from "../test/fakeServer";
import { renderPage } from "../test/renderPage";
import { anInvoice } from "../test/samples";
import { sorted } from "./AgreementCard";
import { Component as TenantBillingPage } from "./TenantBillingPage";

type Served = Parameters<typeof fakeServer>[0];

const BASE = "/api/v1/operator/tenants/ten_2";
const invoice = anInvoice();
const agreement = {
  id: "agm_1",
  minimum_fee: "5.00",
  included_tokens: 0,
  tier_mode: "volume",
  tiers: [{ at_least: "10.00", discount: "7.50" }],
  effective_from: "2026-01-01T00:00:00Z",
  created_at: "2026-01-01T00:00:00Z",
};
const profile = {
  name: "",
  address: "1 Road\nTown",
  tax_id: "",
  time_zone: "Europe/Berlin",
  anchor: "2026-01-15",
  tax_name: "VAT",
  tax_rate: "19",
  payment_days: 14,
};

function open(more: Served = {}, tenant = "ten_2") {
  const page = (data: unknown[]) => ({ body: { data, next: null } });
  const globex = { id: "ten_2", slug: "globex", name: "Globex", is_active: true };
  const seen = fakeServer({
    "GET /api/v1/operator/tenants": page([{ ...globex, created_at: "2026-01-01T00:00:00Z" }]),
    [`GET ${BASE}/invoices`]: page([invoice]),
    [`GET ${BASE}/agreements`]: page([agreement]),
    [`GET ${BASE}/billing-profile`]: { body: profile },
    ...more,
  });
  renderPage(
    <Routes>
      <Route path="/tenants/:tenantId/billing" element={<TenantBillingPage />} />
    </Routes>,
    { path: `/tenants/${tenant}/billing` },
  );
  return seen;
}

async function press(name: string, within_ = screen as Pick<typeof screen, "findByRole">) {
  await userEvent.click(await within_.findByRole("button", { name }));
}

it("books what happened to an invoice, with its reason", async () => {
  const seen = open({
    [`POST ${BASE}/invoices/ivc_1/entries`]: { status: 201, body: { amount: "4.00" } },
  });
  await press("Book on INV-000007");
  const dialog = await screen.findByRole("dialog");
  const amount = within(dialog).getByLabelText("Amount, tax included");
  expect((amount as HTMLInputElement).value).toBe("4.68");
  await userEvent.clear(amount);
  await userEvent.type(amount, "4.005");
  await press("Book it", within(dialog));
  expect(await within(dialog).findByText(/at most 2 decimals/)).toBeDefined();
  expect(within(dialog).getByText(/Say what it is for/)).toBeDefined();
  await userEvent.clear(amount);
  await userEvent.type(amount, "4.00");
  await userEvent.type(within(dialog).getByLabelText("Reason"), "bank transfer");
  await userEvent.type(within(dialog).getByLabelText("Reference"), "TX9");
  await press("Book it", within(dialog));
  await waitFor(() => expect(screen.queryByRole("dialog")).toBeNull());
  const post = seen.find(({ method }) => method === "POST");
  expect(await post?.json()).toEqual({
    kind: "payment",
    amount: "4.00",
    reason: "bank transfer",
    reference: "TX9",
  });
});

it("says in the server's words why an entry has no room", async () => {
  const message = "amount is 99.00: 4.68 is open";
  open({
    [`POST ${BASE}/invoices/ivc_1/entries`]: { status: 400, body: { error: { message } } },
  });
  await press("Book on INV-000007");
  const dialog = await screen.findByRole("dialog");
  await userEvent.type(within(dialog).getByLabelText("Reason"), "x");
  await press("Book it", within(dialog));
  expect(await within(dialog).findByText(message)).toBeDefined();
});

it("shows the agreement in words, and agrees anew from it", async () => {
  const seen = open({ [`POST ${BASE}/agreements`]: { status: 201, body: agreement } });
  const card = await screen.findByRole("region", { name: "Agreement" });
  expect(within(card).getByText("7.5% off everything once a period comes to $10.00")).toBeDefined();
  await press("Agree anew", within(card));
  const dialog = await screen.findByRole("dialog");
  await press("Add a tier", within(dialog));
  await userEvent.type(within(dialog).getByLabelText("Tier 2, from"), "100");
  await userEvent.type(within(dialog).getByLabelText("Tier 2, percent off"), "101");
  await press("Agree", within(dialog));
  expect(await within(dialog).findByText(/up to 100/)).toBeDefined();
  await userEvent.clear(within(dialog).getByLabelText("Tier 2, percent off"));
  await userEvent.type(within(dialog).getByLabelText("Tier 2, percent off"), "12.5");
  await press("Agree", within(dialog));
  await waitFor(() => expect(screen.queryByRole("dialog")).toBeNull());
  const post = seen.find(({ method }) => method === "POST");
  expect(await post?.json()).toEqual({
    minimum_fee: "5.00",
    included_tokens: 0,
    tier_mode: "volume",
    tiers: [
      { at_least: "10.00", discount: "7.50" },
      { at_least: "100", discount: "12.5" },
    ],
  });
});

it("changes how it is billed", async () => {
  const seen = open({ [`PATCH ${BASE}/billing-profile`]: { body: profile } });
  const card = await screen.findByRole("region", { name: "How it is billed" });
  expect(within(card).getByText("Globex")).toBeDefined();
  expect(within(card).getByText("VAT 19%")).toBeDefined();
  await press("Change", within(card));
  const dialog = await screen.findByRole("dialog");
  const percent = within(dialog).getByLabelText("Percent");
  await userEvent.clear(percent);
  await userEvent.type(percent, "a lot");
  await press("Save", within(dialog));
  expect(await within(dialog).findByText(/such as 19/)).toBeDefined();
  await userEvent.clear(percent);
  await userEvent.type(percent, "20");
  await press("Save", within(dialog));
  await waitFor(() => expect(screen.queryByRole("dialog")).toBeNull());
  const patch = seen.find(({ method }) => method === "PATCH");
  expect(await patch?.json()).toEqual({ ...profile, tax_rate: "20" });
});

it("knows no tenant that there is not", async () => {
  open({}, "ten_none");
  expect(await screen.findByText("There is no such tenant")).toBeDefined();
});

it("tells the agreement of now from those to come", () => {
  const from = (effective_from: string) => ({ ...agreement, effective_from }) as typeof agreement;
  const [past, now, next] = ["2026-01-01", "2026-02-01", "2026-05-01"].map(from);
  const found = sorted(
    [next, past, now] as Parameters<typeof sorted>[0],
    new Date("2026-03-01").getTime(),
  );
  expect(found).toEqual({ current: now, coming: [next] });
});
