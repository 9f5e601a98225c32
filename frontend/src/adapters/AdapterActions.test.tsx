import { screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it } from "vitest";
import { fakeServer } from "../test/fakeServer";
import { renderPage } from "../test/renderPage";
import { anAdapter, aVersion } from "../test/samples";
import { Component as AdaptersPage } from "./AdaptersPage";

type Routes = Parameters<typeof fakeServer>[0];

const two = [aVersion({ id: "adv_2", number: 2, rank: 16 }), aVersion()];
const grant = { id: "agr_1", tenant: "globex", created_at: "2026-03-01T00:00:00Z" };

function serve(adapter: object, more: Routes = {}) {
  return fakeServer({
    "GET /api/v1/adapters": { body: { data: [adapter], next: null } },
    "GET /api/v1/adapters/shared": { body: { data: [] } },
    "GET /api/v1/adapters/residency": {
      body: { is_known: true, data: [{ version_id: "adv_1", place: "host" }] },
    },
    "GET /api/v1/adapters/adp_1/grants": { body: { data: [grant] } },
    ...more,
  });
}

async function choose(item: string) {
  await userEvent.click(await screen.findByLabelText("Actions for pirate"));
  await userEvent.click(await screen.findByRole("menuitem", { name: item }));
}

it("shows where the weights are", async () => {
  serve(anAdapter());
  renderPage(<AdaptersPage />);
  expect(await screen.findByText("in host memory")).toBeDefined();
});

it("rolls back to what was served before", async () => {
  const alias = {
    splits: [{ version: 2, weight: 100 }],
    follows_newest: false,
    rolls_back_to: [
      { version: 1, weight: 90 },
      { version: 2, weight: 10 },
    ],
  };
  const seen = serve(anAdapter({ versions: two, alias }), {
    "POST /api/v1/adapters/adp_1/rollback": { body: anAdapter({ versions: two }) },
  });
  renderPage(<AdaptersPage />);
  await choose("Roll back to v1 90% · v2 10%");
  expect(seen.some(({ method, url }) => method === "POST" && url.endsWith("/rollback"))).toBe(true);
});

it("offers no way back where there is none", async () => {
  serve(anAdapter());
  renderPage(<AdaptersPage />);
  await userEvent.click(await screen.findByLabelText("Actions for pirate"));
  await screen.findByRole("menuitem", { name: "Share" });
  expect(screen.queryByText(/Roll back/)).toBeNull();
});

it("shares with a tenant, and says in the server's words why not", async () => {
  const seen = serve(anAdapter(), {
    "POST /api/v1/adapters/adp_1/grants": {
      status: 404,
      body: { error: { message: "There is no tenant 'nobody'." } },
    },
  });
  renderPage(<AdaptersPage />);
  await choose("Share");
  const dialog = await screen.findByRole("dialog");
  expect(await within(dialog).findByText("acme/pirate")).toBeDefined();
  expect(await within(dialog).findByText("globex")).toBeDefined();
  await userEvent.type(within(dialog).getByLabelText("Tenant"), "nobody");
  await userEvent.click(within(dialog).getByRole("button", { name: "Share" }));
  expect(await within(dialog).findByText("There is no tenant 'nobody'.")).toBeDefined();
  const post = seen.find(({ method }) => method === "POST");
  expect(await post?.json()).toEqual({ tenant: "nobody" });
});

it("says what goes with an adapter, and insists only where it has said so", async () => {
  const seen = serve(anAdapter({ pinned: true }), {
    "DELETE /api/v1/adapters/adp_1": { status: 204 },
  });
  renderPage(<AdaptersPage />);
  await choose("Delete");
  const dialog = await screen.findByRole("dialog");
  expect(await within(dialog).findByText(/it is shared with globex/)).toBeDefined();
  expect(within(dialog).getByText("its name answers now: v1")).toBeDefined();
  expect(within(dialog).getByText(/it is pinned/)).toBeDefined();
  await userEvent.click(within(dialog).getByRole("button", { name: "Delete it all the same" }));
  const sent = seen.find(({ method }) => method === "DELETE");
  expect(new URL(sent?.url ?? "").searchParams.get("force")).toBe("true");
});

it("tells the versions' configurations apart", async () => {
  const config = (r: number) => ({ body: { r, target_modules: ["q_proj"] } });
  serve(anAdapter({ versions: two }), {
    "GET /api/v1/versions/adv_1/files/adapter_config.json": config(8),
    "GET /api/v1/versions/adv_2/files/adapter_config.json": config(16),
  });
  renderPage(<AdaptersPage />);
  await userEvent.click(await screen.findByText("2 versions"));
  await userEvent.click(screen.getByRole("button", { name: "Compare two versions" }));
  const row = await screen.findByRole("row", { name: "r 8 16" });
  expect(row).toBeDefined();
  expect(screen.queryByRole("row", { name: /target_modules/ })).toBeNull();
});

it("fetches from an address, and shows how far that is", async () => {
  const file = { name: "w.safetensors", size: 4_000_000, sha256: null, ranges: [[0, 1_000_000]] };
  const fetching = aVersion({
    state: "uploading",
    source: "acme/bot",
    size_bytes: 4_000_000,
    files: [{ ...file, received_bytes: 1_000_000 }],
  });
  const adapter = anAdapter({ state: "uploading", alias: null, versions: [fetching] });
  const seen = serve(adapter, {
    "POST /api/v1/adapters/import": { status: 202, body: { adapter, version: fetching } },
  });
  renderPage(<AdaptersPage />);
  expect(await screen.findByText("Version 1 is fetched from acme/bot")).toBeDefined();
  expect(screen.getByLabelText("25% of version 1 is there")).toBeDefined();
  await userEvent.click(screen.getByText("From a URL or hub"));
  await userEvent.type(screen.getByLabelText("Where it is"), "acme/bot@v2");
  await userEvent.click(screen.getByRole("button", { name: "Fetch it" }));
  const post = seen.find(({ method }) => method === "POST");
  expect(await post?.json()).toEqual({
    name: "bot",
    base_model: "SmolLM2-135M-Instruct",
    source: "acme/bot@v2",
  });
});

it("shows what others share, and gives it back", async () => {
  const poet = {
    id: "adp_9",
    model: "globex/poet",
    owner: "globex",
    base_model: "b",
    versions: [3],
  };
  const seen = serve(anAdapter(), {
    "GET /api/v1/adapters/shared": { body: { data: [poet] } },
    "DELETE /api/v1/adapters/shared/adp_9": { status: 204 },
  });
  renderPage(<AdaptersPage />);
  const section = await screen.findByRole("region", { name: "Shared with you" });
  expect(within(section).getByText("globex/poet")).toBeDefined();
  expect(within(section).getByText("v3")).toBeDefined();
  await userEvent.click(within(section).getByRole("button", { name: "Give back" }));
  await userEvent.click(await screen.findByRole("button", { name: "Give it back" }));
  expect(seen.some(({ method }) => method === "DELETE")).toBe(true);
});

it("asks the server for what is searched, and keeps it in the address", async () => {
  const seen = serve(anAdapter());
  renderPage(<AdaptersPage />, { path: "/adapters?q=pir&state=ready" });
  await screen.findByText("pirate");
  const list = seen.find(({ url }) => new URL(url).pathname === "/api/v1/adapters");
  expect(new URL(list?.url ?? "").search).toBe("?q=pir&state=ready");
});
