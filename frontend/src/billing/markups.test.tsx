import { screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it } from "vitest";
import { fakeServer } from "../test/fakeServer";
import { renderPage } from "../test/renderPage";
import { CreditTable } from "./CreditTable";
import { EarningsCard } from "./EarningsCard";
import { PricePlan } from "./PricePlan";

const earning = {
  adapter_id: "adp_1",
  label: "acme/pirate",
  grantee: "globex",
  requests: 12,
  tokens: 1_000_000,
  amount: "1.600000000001",
};
const period = {
  statement_id: "stm_1",
  period_start: "2026-02-01T00:00:00Z",
  period_end: "2026-03-01T00:00:00Z",
  earned: "6.4",
};

const offer = {
  model: "globex/bot",
  kind: "shared",
  base_model: "base",
  adapter_id: "adp_9",
  owner: "globex",
  input: "3.2",
  cached_input: "2.8",
  output: "4.2",
  surcharge: "0.2",
  markup: "2.5",
  batch_discount: 50,
  since: "2026-03-01T00:00:00Z",
};

it("shows what others' use has earned, to the last digit, and from whom in earlier periods", async () => {
  fakeServer({
    "GET /api/v1/earnings": {
      body: { data: [earning], total: "1.600000000001", closed: [period], time_zone: "UTC" },
    },
    "GET /api/v1/statements/stm_1": {
      body: { earnings: [{ ...earning, grantee: "initech", amount: "6.4" }], lines: [] },
    },
  });
  renderPage(<EarningsCard />);
  const card = await screen.findByRole("region", { name: "Earned by sharing" });
  const row = within(card).getByRole("row", { name: /acme\/pirate globex/ });
  expect(within(row).getByText("$1.600000000001")).toBeDefined();
  expect(
    within(card).getByRole("row", { name: /Since your last statement \$1\.600000000001/ }),
  ).toBeDefined();
  await userEvent.click(within(card).getByRole("button", { name: /From whom/ }));
  const dialog = await screen.findByRole("dialog");
  expect(await within(dialog).findByText("initech")).toBeDefined();
});

it("says nothing of earnings and credit where there never were any, and says it where they cannot be read", async () => {
  fakeServer({
    "GET /api/v1/earnings": { body: { data: [], total: "0", closed: [] } },
    "GET /api/v1/grants": { status: 500, body: { error: { message: "no" } } },
  });
  renderPage(
    <>
      <EarningsCard />
      <CreditTable />
    </>,
  );
  expect(await screen.findByText("The credit could not be read")).toBeDefined();
  expect(screen.queryByText("Earned by sharing")).toBeNull();
});

it("shows credit by how it came, with what is left", async () => {
  const credit = {
    id: "grt_1",
    amount: "6.4",
    kind: "earned",
    reference: "earned:stm_1",
    remaining: "2.25",
    expires_at: null,
    created_at: "2026-03-01T00:00:05Z",
  };
  fakeServer({ "GET /api/v1/grants": { body: { data: [credit], next: null } } });
  renderPage(<CreditTable />);
  const row = await screen.findByRole("row", { name: /earned by sharing/ });
  expect(within(row).getByText("$6.40")).toBeDefined();
  expect(within(row).getByText("$2.25")).toBeDefined();
  expect(within(row).getByText("never")).toBeDefined();
});

it("shows what a million tokens costs with all that is in it, and what was agreed besides", async () => {
  const agreement = {
    id: "agm_1",
    minimum_fee: "5.00",
    included_tokens: 1_000_000,
    tier_mode: "graduated",
    tiers: [{ at_least: "10.00", discount: "10.00" }],
    effective_from: "2026-01-01T00:00:00Z",
    created_at: "2026-01-01T00:00:00Z",
  };
  const plain = { surcharge: "0", markup: "0", owner: null, adapter_id: null, batch_discount: 0 };
  fakeServer({
    "GET /api/v1/price-plan": {
      body: {
        data: [
          { ...offer, ...plain, model: "base", kind: "base", input: "0.5" },
          { ...offer, ...plain, model: "base", kind: "any_adapter" },
          offer,
        ],
      },
    },
    "GET /api/v1/agreement": { body: { agreement } },
  });
  renderPage(<PricePlan />);
  const card = await screen.findByRole("region", { name: "Prices per 1M tokens" });
  const shared = within(card).getByRole("row", { name: /globex\/bot/ });
  expect(within(shared).getByText("$3.20")).toBeDefined();
  expect(
    within(shared).getByText("with $0.20 for running an adapter and $2.50 for globex in it"),
  ).toBeDefined();
  expect(within(shared).getByText("−50%")).toBeDefined();
  expect(within(card).getByText("Your adapters of base")).toBeDefined();
  expect(within(card).getByText("$0.50")).toBeDefined();
  const agreed = await screen.findByRole("list", { name: "What was agreed besides" });
  expect(within(agreed).getByText("10% off what a period comes to beyond $10.00")).toBeDefined();
  expect(within(agreed).getByText("1,000,000 tokens of a period are included")).toBeDefined();
  expect(within(agreed).getByText("At least $5.00 a period")).toBeDefined();
});

it("says that requests are refused where there is no price", async () => {
  fakeServer({
    "GET /api/v1/price-plan": { body: { data: [] } },
    "GET /api/v1/agreement": { body: { agreement: null } },
  });
  renderPage(<PricePlan />);
  expect(await screen.findByText(/No price is set for you/)).toBeDefined();
});
