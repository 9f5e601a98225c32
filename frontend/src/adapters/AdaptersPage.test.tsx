import { screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it } from "vitest";
import { fakeServer } from "../test/fakeServer";
import { renderPage } from "../test/renderPage";
import { anAdapter, aVersion } from "../test/samples";
import { Component as AdaptersPage } from "./AdaptersPage";

function serveAdapters(...data: object[]) {
  return fakeServer({ "GET /api/v1/adapters": { body: { data, next: null } } });
}

it("tells a newcomer what to do", async () => {
  serveAdapters();
  renderPage(<AdaptersPage />);
  expect(await screen.findByText("No adapters yet")).toBeDefined();
  expect(screen.getByText("Drop a PEFT folder here, or click to choose one")).toBeDefined();
});

it("offers a viewer nothing that the server would refuse", async () => {
  serveAdapters(anAdapter());
  renderPage(<AdaptersPage />, { role: "viewer" });
  expect(await screen.findByText("pirate")).toBeDefined();
  expect(screen.queryByText("Drop a PEFT folder here, or click to choose one")).toBeNull();
  expect(screen.queryByLabelText("Actions for pirate")).toBeNull();
});

it("puts the check's report in words", async () => {
  const problem = {
    code: "rank_too_large",
    where: "adapter_config.json: r",
    found: "128",
    expected: "at most 64",
    remedy: "Train with a smaller rank.",
  };
  const report = { problems: [problem], summary: "Refused: 1 problem found." };
  const versions = [aVersion({ number: 2, state: "rejected", report }), aVersion()];
  serveAdapters(anAdapter({ state: "rejected", versions }));
  renderPage(<AdaptersPage />);
  const card = await screen.findByLabelText("Adapter pirate");
  expect(within(card).getByText("Version 2 was refused: 1 problem")).toBeDefined();
  expect(within(card).getByText("Train with a smaller rank.")).toBeDefined();
  expect(within(card).getByText(/^serves v1 · rank 8 · 937 kB/)).toBeDefined();
});

it("serves another version by one click", async () => {
  const seen = fakeServer({
    "GET /api/v1/adapters": {
      body: {
        data: [anAdapter({ versions: [aVersion({ number: 2, id: "adv_2" }), aVersion()] })],
        next: null,
      },
    },
    "PUT /api/v1/adapters/adp_1/alias": { body: anAdapter() },
  });
  renderPage(<AdaptersPage />);
  await userEvent.click(await screen.findByText("2 versions"));
  await userEvent.click(screen.getByText("Serve"));
  const put = seen.find(({ method }) => method === "PUT");
  expect(await put?.json()).toEqual({
    follows_newest: false,
    splits: [{ version: 2, weight: 100 }],
  });
});

it("shows the server's sentence when the list cannot be read", async () => {
  fakeServer({
    "GET /api/v1/adapters": {
      status: 403,
      body: { error: { message: "Your role is too small." } },
    },
  });
  renderPage(<AdaptersPage />);
  expect(await screen.findByText("Your role is too small.")).toBeDefined();
});

it("pins an adapter, for those who may", async () => {
  const seen = fakeServer({
    "GET /api/v1/adapters": { body: { data: [anAdapter()], next: null } },
    "PUT /api/v1/adapters/adp_1/pin": { body: anAdapter({ pinned: true }) },
  });
  renderPage(<AdaptersPage />, { role: "admin" });
  await userEvent.click(await screen.findByLabelText("Pin pirate"));
  const put = seen.find(({ method }) => method === "PUT");
  expect(await put?.json()).toEqual({ pinned: true });
});

it("shows no pin that the server refused", async () => {
  const seen = fakeServer({
    "GET /api/v1/adapters": { body: { data: [anAdapter()], next: null } },
    "PUT /api/v1/adapters/adp_1/pin": { status: 409, body: { error: { message: "No room." } } },
  });
  renderPage(<AdaptersPage />, { role: "owner" });
  await userEvent.click(await screen.findByLabelText("Pin pirate"));
  expect(seen.some(({ method }) => method === "PUT")).toBe(true);
  expect(screen.getByLabelText("Pin pirate")).toHaveProperty("checked", false);
});

it("offers a developer no pin", async () => {
  fakeServer({ "GET /api/v1/adapters": { body: { data: [anAdapter()], next: null } } });
  renderPage(<AdaptersPage />, { role: "developer" });
  expect(await screen.findByText("pirate")).toBeDefined();
  expect(screen.queryByLabelText("Pin pirate")).toBeNull();
});
