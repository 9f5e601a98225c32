import { screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it } from "vitest";
import { fakeServer } from "../test/fakeServer";
import { renderPage } from "../test/renderPage";
import { InvoiceAddress } from "./InvoiceAddress";

const profile = {
  name: "",
  address: "",
  tax_id: "",
  time_zone: "UTC",
  anchor: "2026-01-01",
  tax_name: "VAT",
  tax_rate: "19",
  payment_days: 14,
};
const PROFILE = "/api/v1/billing-profile";

it("changes whom invoices name, and says in the server's words why not", async () => {
  const answers = [
    { status: 400, body: { error: { message: "time_zone is 'Moon': there is no such zone" } } },
    { body: profile },
  ];
  const seen = fakeServer({
    [`GET ${PROFILE}`]: { body: profile },
    [`PATCH ${PROFILE}`]: () => answers.shift() ?? { status: 500 },
  });
  renderPage(<InvoiceAddress />);
  const card = await screen.findByRole("region", { name: "On your invoices" });
  expect(within(card).getByText("Acme")).toBeDefined();
  await userEvent.click(within(card).getByRole("button", { name: "Change" }));
  const dialog = await screen.findByRole("dialog");
  await userEvent.type(within(dialog).getByLabelText("Name"), "Acme Ltd");
  await userEvent.click(within(dialog).getByRole("button", { name: "Save" }));
  expect(await within(dialog).findByText(/there is no such zone/)).toBeDefined();
  await userEvent.click(within(dialog).getByRole("button", { name: "Save" }));
  await waitFor(() => expect(screen.queryByRole("dialog")).toBeNull());
  const patch = seen.find(({ method }) => method === "PATCH");
  expect(await patch?.json()).toEqual({
    name: "Acme Ltd",
    address: "",
    tax_id: "",
    time_zone: "UTC",
  });
});

it("offers no change to those who may not make one", async () => {
  fakeServer({ [`GET ${PROFILE}`]: { body: profile } });
  renderPage(<InvoiceAddress />, { role: "viewer" });
  expect(await screen.findByText("On your invoices")).toBeDefined();
  expect(screen.queryByRole("button", { name: "Change" })).toBeNull();
});
