import { screen, within } from "@testing-library/react";
import { expect, it } from "vitest";
import { fakeServer } from "../test/fakeServer";
import { aFleet } from "../test/fleet";
import { renderPage } from "../test/renderPage";
import { Component as CapacityPage } from "./CapacityPage";
import worked from "./worked.json";

const smol = {
  name: "SmolLM2-135M-Instruct",
  is_served: true,
  has_price: true,
  adapters: 3,
  ready_versions: 4,
  tenants: 2,
  size: worked[2]?.size,
};

function server() {
  fakeServer({
    "GET /api/v1/operator/base-models": { body: { data: [smol] } },
    "GET /api/v1/operator/fleet": { body: aFleet() },
  });
}

it("reckons what the address asks, as the documentation does by hand", async () => {
  server();
  const path =
    "/capacity?model=llama-3.1-8b&device=h100&memory=80&kv=bf16&context=4096&slots=0&reserve=0";
  renderPage(<CapacityPage />, { path });
  const found = await screen.findByRole("region", { name: "What fits" });
  expect(within(found).getByText("119")).toBeDefined();
  expect(within(found).getByText("131 kB")).toBeDefined();
  expect(within(found).getByText("487,808 tokens")).toBeDefined();
});

it("begins with the model that is served, on the device that serves it", async () => {
  server();
  renderPage(<CapacityPage />);
  await screen.findByRole("region", { name: "What fits" });
  expect(screen.getByRole<HTMLInputElement>("combobox", { name: "Model" }).value).toBe(smol.name);
});

it("says so where nothing fits, and takes nonsense in the address for the usual", async () => {
  server();
  renderPage(<CapacityPage />, {
    path: "/capacity?model=llama-3.1-70b&device=h100&context=-3&rank=x",
  });
  expect(await screen.findByText("Not one sequence fits")).toBeDefined();
  expect(screen.getByLabelText<HTMLInputElement>("Tokens of a sequence").value).toBe("4,096");
});
