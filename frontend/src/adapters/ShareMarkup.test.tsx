import { screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it } from "vitest";
import { fakeServer } from "../test/fakeServer";
import { renderPage } from "../test/renderPage";
import { anAdapter } from "../test/samples";
import { SharedWithYou } from "./SharedWithYou";
import { ShareModal } from "./ShareModal";

type Routes = Parameters<typeof fakeServer>[0];

const grant = { id: "agr_1", tenant: "globex", created_at: "2026-03-01T00:00:00Z" };
const markup = {
  id: "mkp_1",
  adapter_id: "adp_1",
  owner: "acme",
  grantee: "globex",
  per_million: "2.5",
  earned_per_million: "2",
  earned: "1.6",
  effective_from: "2026-03-02T00:00:00Z",
};
const rules = { max_per_million: "10", owner_percent: 80 };
const PUT = "PUT /api/v1/adapters/adp_1/grants/agr_1/markup";

function share(markups: unknown[], more: Routes = {}) {
  const seen = fakeServer({
    "GET /api/v1/adapters/adp_1/grants": { body: { data: [grant] } },
    "GET /api/v1/markups": { body: { data: markups, ...rules } },
    ...more,
  });
  renderPage(<ShareModal adapter={anAdapter()} opened onClose={() => undefined} />);
  return seen;
}

async function fillIn(amount: string) {
  await userEvent.click(await screen.findByRole("button", { name: "Set what globex pays on top" }));
  const dialog = await screen.findByRole("dialog", { name: "What globex pays on top" });
  const field = within(dialog).getByLabelText("Per 1M tokens");
  await userEvent.clear(field);
  if (amount) await userEvent.type(field, amount);
  await userEvent.click(within(dialog).getByRole("button", { name: "Set it" }));
  return dialog;
}

it("shows what a tenant pays on top, and what of it is the owner's", async () => {
  share([{ ...markup, grantee: "initech" }, markup]);
  expect(await screen.findByText("$2.50")).toBeDefined();
  expect(screen.getByText("you get $2.00; $1.60 since your last statement")).toBeDefined();
});

it("sets it as the text that was typed", async () => {
  const seen = share([], { [PUT]: { body: { markup } } });
  const dialog = await fillIn("2.500001");
  expect(within(dialog).getByText(/up to \$10\.00.*You get 80% of it/)).toBeDefined();
  const put = seen.find(({ method }) => method === "PUT");
  expect(await put?.json()).toEqual({ per_million: "2.500001" });
});

it.each([
  ["", "Use an amount with at most 6 decimals, such as 2.50"],
  ["2.5000001", "Use an amount with at most 6 decimals, such as 2.50"],
  ["10.01", "This platform allows $10.00 at most"],
])("does not send %j", async (amount, problem) => {
  const seen = share([]);
  const dialog = await fillIn(amount);
  expect(await within(dialog).findByText(problem)).toBeDefined();
  expect(seen.some(({ method }) => method === "PUT")).toBe(false);
});

it("says in the server's words why not", async () => {
  const message = "per_million is 9: this platform allows 0 to 5 USD per million tokens";
  share([], { [PUT]: { status: 400, body: { error: { message } } } });
  const dialog = await fillIn("9");
  expect(await within(dialog).findByText(message)).toBeDefined();
});

it("tells the other tenant the price with the mark-up before it calls", async () => {
  const poet = {
    id: "adp_9",
    model: "globex/poet",
    owner: "globex",
    base_model: "b",
    versions: [3],
  };
  const offer = {
    model: "globex/poet",
    kind: "shared",
    base_model: "b",
    adapter_id: "adp_9",
    owner: "globex",
    input: "3",
    cached_input: "2.6",
    output: "4",
    surcharge: "0",
    markup: "2.5",
    batch_discount: 0,
    since: "2026-03-01T00:00:00Z",
  };
  fakeServer({
    "GET /api/v1/adapters/shared": {
      body: { data: [poet, { ...poet, id: "adp_8", model: "x/y" }] },
    },
    "GET /api/v1/price-plan": { body: { data: [offer] } },
  });
  renderPage(<SharedWithYou canWrite />);
  const row = await screen.findByRole("row", { name: /globex\/poet/ });
  expect(await within(row).findByText("$3.00 · $2.60 · $4.00")).toBeDefined();
  expect(within(row).getByText("with $2.50 for globex in it")).toBeDefined();
  const other = screen.getByRole("row", { name: /x\/y/ });
  expect(within(other).queryByText(/\$/)).toBeNull();
});
