import { screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { beforeEach, expect, it, vi } from "vitest";
import { fakeServer } from "../test/fakeServer";
import { renderPage } from "../test/renderPage";
import { anInvoice } from "../test/samples";
import { AddCreditButton } from "./AddCreditButton";
import { PayButton } from "./PayButton";
import { Payments } from "./PaymentTable";

const OPTIONS = { available: true, minimum: "1", maximum: "50000" };
const payment = {
  id: "pay_1",
  kind: "credit",
  invoice_id: null,
  amount: "25.00",
  reversed: "0.00",
  currency: "USD",
  state: "paid",
  created_at: "2026-03-01T00:00:00Z",
  paid_at: "2026-03-01T00:01:00Z",
};
const invoice = anInvoice({
  subtotal: "4.68",
  tax_name: "Tax",
  tax_rate: "0",
  tax: "0.00",
  total: "4.68",
  state: "open",
});
const assign = vi.fn();

beforeEach(() => {
  assign.mockReset();
  vi.stubGlobal("location", { ...window.location, assign });
});

function serve(options: unknown, answer: { status?: number; body: unknown } | null = null) {
  return fakeServer({
    "GET /api/v1/payments/options": { body: options },
    "GET /api/v1/payments": { body: { data: [payment], next: null } },
    ...(answer ? { "POST /api/v1/payments": answer } : {}),
  });
}

it("buys credit on the provider's page", async () => {
  const url = "https://checkout.example/c/1";
  const seen = serve(OPTIONS, { status: 201, body: { ...payment, url } });
  renderPage(<AddCreditButton />);
  await userEvent.click(await screen.findByRole("button", { name: "Add credit" }));
  const amount = await screen.findByLabelText("Amount");
  await userEvent.type(amount, "25");
  await userEvent.click(screen.getByRole("button", { name: "Go to payment" }));
  await vi.waitFor(() => expect(assign).toHaveBeenCalledWith(url));
  const posts = seen.filter(({ method }) => method === "POST");
  expect(posts).toHaveLength(1);
  expect(await posts[0]?.json()).toEqual({ kind: "credit", amount: "25" });
});

it.each(["0.5", "1.001", "60000"])("does not ask for %s", async (wrong) => {
  const seen = serve(OPTIONS);
  renderPage(<AddCreditButton />);
  await userEvent.click(await screen.findByRole("button", { name: "Add credit" }));
  const amount = await screen.findByLabelText("Amount");
  await userEvent.type(amount, wrong);
  await userEvent.click(screen.getByRole("button", { name: "Go to payment" }));
  expect(amount.getAttribute("aria-invalid")).toBe("true");
  expect(seen.filter(({ method }) => method === "POST")).toHaveLength(0);
});

it("says why a payment was not opened, and stays", async () => {
  serve(OPTIONS, { status: 503, body: { error: { message: "The provider is away." } } });
  renderPage(<AddCreditButton />);
  await userEvent.click(await screen.findByRole("button", { name: "Add credit" }));
  await userEvent.type(await screen.findByLabelText("Amount"), "25");
  await userEvent.click(screen.getByRole("button", { name: "Go to payment" }));
  expect(await screen.findByText("The provider is away.")).toBeDefined();
  expect(assign).not.toHaveBeenCalled();
});

it("has no buttons where nothing can be paid", async () => {
  const seen = serve({ ...OPTIONS, available: false });
  renderPage(
    <>
      <AddCreditButton />
      <PayButton invoice={invoice} />
    </>,
  );
  await vi.waitFor(() => expect(seen.length).toBeGreaterThan(0));
  expect(screen.queryByRole("button")).toBeNull();
});

it("does not offer payments to whom they are not for", () => {
  const seen = serve(OPTIONS);
  renderPage(<AddCreditButton />, { role: "viewer" });
  expect(screen.queryByRole("button")).toBeNull();
  expect(seen).toHaveLength(0);
});

it("pays an invoice that asks for something, and no other", async () => {
  const url = "https://checkout.example/c/2";
  const seen = serve(OPTIONS, { status: 201, body: { ...payment, url } });
  renderPage(
    <>
      <PayButton invoice={{ ...invoice, number: "INV-000008", open: "0.40" }} />
      <PayButton invoice={invoice} />
    </>,
  );
  await userEvent.click(await screen.findByRole("button", { name: "Pay INV-000007" }));
  await vi.waitFor(() => expect(assign).toHaveBeenCalledWith(url));
  expect(screen.getAllByRole("button")).toHaveLength(1);
  const post = seen.find(({ method }) => method === "POST");
  expect(await post?.json()).toEqual({ kind: "invoice", invoice_id: "ivc_1" });
});

it("shows what became of payments", async () => {
  fakeServer({
    "GET /api/v1/payments": {
      body: {
        data: [
          payment,
          { ...payment, id: "pay_2", state: "started", kind: "invoice", invoice_id: "ivc_1" },
          { ...payment, id: "pay_3", reversed: "5.00" },
        ],
        next: null,
      },
    },
  });
  renderPage(<Payments invoices={[invoice]} />);
  const rows = await screen.findAllByRole("row");
  expect(within(rows[1] as HTMLElement).getByText("paid")).toBeDefined();
  expect(within(rows[2] as HTMLElement).getByText("Invoice INV-000007")).toBeDefined();
  expect(within(rows[2] as HTMLElement).getByText("under way")).toBeDefined();
  expect(within(rows[3] as HTMLElement).getByText("$5.00")).toBeDefined();
});
