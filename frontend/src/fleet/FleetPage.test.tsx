import { screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it } from "vitest";
import { fakeServer } from "../test/fakeServer";
import { aFleet } from "../test/fleet";
import { renderPage } from "../test/renderPage";
import { Component as FleetPage } from "./FleetPage";

const TENANTS = {
  body: {
    data: [
      {
        id: "ten_1",
        slug: "acme",
        name: "Acme",
        is_active: true,
        created_at: "2026-03-01T10:00:00Z",
      },
    ],
    next: null,
  },
};

function server(fleet: ReturnType<typeof aFleet>, routes = {}) {
  return fakeServer({
    "GET /api/v1/operator/fleet": { body: fleet },
    "GET /api/v1/operator/tenants": TENANTS,
    ...routes,
  });
}

it("shows what runs, what waits for whom, and what fills the memory", async () => {
  server(aFleet());
  renderPage(<FleetPage />);
  expect(await screen.findByText("serving")).toBeDefined();
  expect(screen.getByText("of 64 at once")).toBeDefined();
  expect(await screen.findByRole("row", { name: "Acme 2 1" })).toBeDefined();
  expect(screen.getByRole("row", { name: "ten_2 0 3" })).toBeDefined();
  expect(screen.getByText("596 used, 1,500 cached, 2,000 free of 4,096")).toBeDefined();
  expect(screen.getByText("2 in use, 2 loaded, 12 free of 16")).toBeDefined();
});

it("says what a drain does before it does it", async () => {
  const seen = server(aFleet(), {
    "POST /api/v1/operator/fleet/engine/drain": { body: aFleet().replicas[0] },
  });
  renderPage(<FleetPage />);
  await userEvent.click(await screen.findByRole("button", { name: "Drain" }));
  expect(
    await screen.findByText(/2 sequences running and 4 sequences waiting go on/),
  ).toBeDefined();
  expect(seen.some(({ method }) => method === "POST")).toBe(false);
  const dialog = within(screen.getByRole("dialog"));
  await userEvent.click(dialog.getByRole("button", { name: "Drain" }));
  await waitFor(() => expect(seen.some(({ method }) => method === "POST")).toBe(true));
});

it("offers to resume what is drained, and no restart of what is not ours", async () => {
  const fleet = aFleet({ state: "draining" });
  const [replica] = fleet.replicas;
  server({ ...fleet, replicas: replica ? [{ ...replica, can_restart: false }] : [] });
  renderPage(<FleetPage />);
  expect(await screen.findByRole("button", { name: "Resume" })).toBeDefined();
  expect(screen.queryByRole("button", { name: "Drain" })).toBeNull();
  expect(screen.queryByRole("button", { name: "Restart" })).toBeNull();
});

it("says so when an engine is away, and lets it be restarted all the same", async () => {
  const fleet = aFleet({ state: "away" });
  const [replica] = fleet.replicas;
  const away = { load: null, limits: null, totals: null, boot_id: null };
  server({ ...fleet, replicas: replica ? [{ ...replica, ...away }] : [] });
  renderPage(<FleetPage />);
  expect(await screen.findByText("It does not answer")).toBeDefined();
  expect(screen.getByRole("button", { name: "Restart" })).toBeDefined();
});

it("shows the server's own sentence where it fails", async () => {
  fakeServer({
    "GET /api/v1/operator/fleet": {
      status: 403,
      body: { error: { message: "Only an operator." } },
    },
  });
  renderPage(<FleetPage />);
  expect(await screen.findByText("Only an operator.")).toBeDefined();
});
