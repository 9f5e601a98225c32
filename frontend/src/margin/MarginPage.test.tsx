import { screen, within } from "@testing-library/react";
import { expect, it } from "vitest";
import { fakeServer } from "../test/fakeServer";
import { aMargin, someMoney } from "../test/margin";
import { renderPage } from "../test/renderPage";
import { Component as MarginPage } from "./MarginPage";

const TENANTS = { body: { data: [], next: null } };

it("shows what comes in, what it costs, prefill and decode apart, and what idleness costs", async () => {
  const loss = someMoney({
    revenue: "0.001",
    cost: "0.003",
    margin: "-0.002",
    margin_percent: "-200.0",
  });
  const seen = fakeServer({
    "GET /api/v1/operator/tenants": TENANTS,
    "GET /api/v1/operator/margin": {
      body: aMargin({ data: [{ group: "ten_2", label: "Globex", tenant: "Globex", ...loss }] }),
    },
  });
  renderPage(<MarginPage />, { path: "/margin?by=tenant&range=7d&tz=UTC" });
  const inAll = await screen.findByRole("region", { name: "In all" });
  expect(within(inAll).getByText("98% of revenue")).toBeDefined();
  expect(within(inAll).getByText("$0.400")).toBeDefined();
  const table = screen.getByRole("region", { name: "Margin table" });
  expect(within(table).getByText("-$0.00200")).toBeDefined();
  const asked = new URL(seen.find(({ url }) => url.includes("/margin"))?.url ?? "").searchParams;
  expect([asked.get("group_by"), asked.get("tz"), asked.has("tenant_id")]).toEqual([
    "tenant",
    "UTC",
    false,
  ]);
});

it("says whose an adapter is, and asks for one tenant where the address does", async () => {
  const seen = fakeServer({
    "GET /api/v1/operator/tenants": TENANTS,
    "GET /api/v1/operator/margin": {
      body: aMargin({
        data: [{ group: "adp_1", label: "pirate", tenant: "Acme", ...someMoney() }],
      }),
    },
  });
  renderPage(<MarginPage />, { path: "/margin?by=adapter&tenant=ten_1" });
  expect(await screen.findByRole("columnheader", { name: "Tenant" })).toBeDefined();
  expect(screen.getByText("Acme")).toBeDefined();
  expect(seen.some(({ url }) => url.includes("tenant_id=ten_1"))).toBe(true);
});

it("says so where nothing was asked of the platform", async () => {
  fakeServer({
    "GET /api/v1/operator/tenants": TENANTS,
    "GET /api/v1/operator/margin": {
      body: aMargin({ data: [], total: someMoney({ requests: 0 }) }),
    },
  });
  renderPage(<MarginPage />);
  expect(await screen.findByText("No requests in this time")).toBeDefined();
});
