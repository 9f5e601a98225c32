import { screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it } from "vitest";
import { fakeServer } from "../test/fakeServer";
import { renderPage } from "../test/renderPage";
import { Component as AlertsPage } from "./AlertsPage";
import { alertWords } from "./alertWords";
import { Component as BaseModelsPage } from "./BaseModelsPage";
import { Component as HealthPage } from "./HealthPage";
import { PriceModal } from "./PriceModal";
import { Component as TenantsPage } from "./TenantsPage";

const tenant = (name: string, is_active = true) => ({
  id: `ten_${name}`,
  slug: name.toLowerCase(),
  name,
  is_active,
  created_at: "2026-03-01T10:00:00Z",
});

it("shows what is down first", async () => {
  const part = (name: string, state: string) => ({
    name,
    state,
    detail: `${name} says`,
    milliseconds: 1.2,
  });
  fakeServer({
    "GET /api/v1/operator/health": {
      body: {
        at: "2026-03-01T10:00:00Z",
        parts: [part("PostgreSQL", "up"), part("Engine", "down")],
      },
    },
  });
  renderPage(<HealthPage />);
  await screen.findByText("Engine says");
  const rows = screen.getAllByRole("row").slice(1);
  expect(rows.map((row) => within(row).getAllByRole("cell")[0]?.textContent)).toEqual([
    "Engine",
    "PostgreSQL",
  ]);
});

it("sends whoever sees a model without a price to the prices", async () => {
  const model = {
    name: "m",
    is_served: true,
    has_price: false,
    adapters: 1,
    ready_versions: 1,
    tenants: 1,
    size: null,
  };
  fakeServer({ "GET /api/v1/operator/base-models": { body: { data: [model] } } });
  renderPage(<BaseModelsPage />);
  expect(await screen.findByRole("link", { name: "none: requests are refused" })).toBeDefined();
  expect(screen.queryByRole("link", { name: "Capacity of m" })).toBeNull();
});

it("tells the tenants' alerts in sentences, and asks for the kind in the address", async () => {
  const seen = fakeServer({
    "GET /api/v1/operator/tenant-alerts": {
      body: {
        data: [
          {
            id: "alr_1",
            tenant_id: "ten_1",
            tenant: "acme",
            kind: "budget.threshold",
            subject: "ten_1",
            data: { name: "Acme", percent: 80, spent: "8.1", budget: "10" },
            created_at: "2026-03-01T10:00:00Z",
          },
        ],
        next: null,
      },
    },
  });
  renderPage(<AlertsPage />, { path: "/alerts?of=tenants&kind=budget.threshold" });
  expect(
    await screen.findByText("Acme has used 80% of its budget: $8.10 of $10.00."),
  ).toBeDefined();
  expect(new URL(seen[0]?.url ?? "").search).toBe("?kind=budget.threshold");
});

it("has words for what it knows, and shows the rest as it is", () => {
  expect(
    alertWords("discrepancy.opened", { discrepancy_kind: "usage_missing", request_id: "req_1" }),
  ).toBe("Usage missing: req_1.");
  expect(alertWords("of.a.newer.server", { some_thing: 1 })).toBe("Some thing: 1");
});

it("finds tenants by name and state, in the address", async () => {
  fakeServer({
    "GET /api/v1/operator/tenants": {
      body: { data: [tenant("Acme"), tenant("Globex", false), tenant("Gnome")], next: null },
    },
    "GET /api/v1/operator/prices": { body: { data: [], next: null } },
  });
  renderPage(<TenantsPage />, { path: "/tenants?search=g&state=suspended" });
  expect(await screen.findByText("Globex")).toBeDefined();
  expect(screen.queryByText("Acme")).toBeNull();
  expect(screen.queryByText("Gnome")).toBeNull();
});

it("shows what a price would have made of last month before it is set", async () => {
  const change = {
    requests: 12,
    before: "1.23",
    after: "1.5",
    change: "0.27",
    change_percent: "22.0",
  };
  const seen = fakeServer({
    "POST /api/v1/operator/prices/preview": {
      body: {
        from: "2026-02-01T00:00:00Z",
        to: "2026-03-01T00:00:00Z",
        data: [{ tenant_id: "ten_1", tenant: "Acme", ...change }],
        total: change,
      },
    },
  });
  renderPage(<PriceModal opened onClose={() => undefined} tenants={[]} />);
  await userEvent.type(screen.getByLabelText("Input"), "1");
  await userEvent.type(screen.getByLabelText("Cached input"), "0.5");
  expect(seen).toHaveLength(0);
  await userEvent.type(screen.getByLabelText("Output"), "2");
  const effect = await screen.findByRole("region", { name: "Effect on last month" });
  expect(within(effect).getAllByText("+$0.27 (+22%)")).toHaveLength(2);
  expect(await seen.at(-1)?.json()).toEqual({
    base_model: "SmolLM2-135M-Instruct",
    input: "1",
    cached_input: "0.5",
    output: "2",
  });
});
