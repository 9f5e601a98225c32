import { screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it } from "vitest";
import { fakeServer } from "../test/fakeServer";
import { renderPage } from "../test/renderPage";
import { Component as MembersPage } from "./MembersPage";
import { grantable, mayChange } from "./roles";

const member = (id: number, role: string) => ({
  id: `mem_${id}`,
  user_id: `usr_${id}`,
  email: `p${id}@acme.test`,
  role,
  created_at: "2026-03-01T10:00:00Z",
});
const invitation = {
  id: "inv_1",
  email: "new@acme.test",
  role: "viewer",
  invited_by: "p1@acme.test",
  created_at: "2026-03-01T10:00:00Z",
  expires_at: "2026-03-08T10:00:00Z",
};

function serve() {
  return fakeServer({
    "GET /api/v1/members": {
      body: { data: [member(1, "owner"), member(2, "viewer")], next: null },
    },
    "GET /api/v1/invitations": { body: { data: [invitation], next: null } },
    "POST /api/v1/invitations": {
      status: 201,
      body: { ...invitation, link: "http://console/join#tok" },
    },
    "DELETE /api/v1/members/mem_2": { status: 204 },
  });
}

it("shows who belongs and who is asked, and lets nobody remove themselves by accident", async () => {
  serve();
  renderPage(<MembersPage />);
  expect(await screen.findByText("p2@acme.test")).toBeDefined();
  expect(await screen.findByText("new@acme.test")).toBeDefined();
  expect(screen.getByText("you")).toBeDefined();
  expect(screen.queryByRole("button", { name: "Remove p1@acme.test" })).toBeNull();
});

it("finds people by their address, members and invited alike, by the page's own address, too", async () => {
  serve();
  renderPage(<MembersPage />, { path: "/members?q=NEW@" });
  expect(await screen.findByText("new@acme.test")).toBeDefined();
  expect(screen.queryByText("p2@acme.test")).toBeNull();
  const search = screen.getByRole("searchbox", { name: "Search by address" });
  await userEvent.clear(search);
  await userEvent.type(search, "p2");
  expect(await screen.findByText("p2@acme.test")).toBeDefined();
  await waitFor(() => expect(screen.queryByText("p1@acme.test")).toBeNull());
  await userEvent.type(search, "nobody");
  expect(await screen.findByText(/Nobody of this address/)).toBeDefined();
});

it("shows those behind the server's first page", async () => {
  const pages = [
    { body: { data: [member(1, "owner")], next: "more" } },
    { body: { data: [member(2, "viewer")], next: null } },
  ];
  fakeServer({
    "GET /api/v1/members": () => pages.shift() ?? { status: 500, body: {} },
    "GET /api/v1/invitations": { body: { data: [], next: null } },
  });
  renderPage(<MembersPage />);
  expect(await screen.findByText("p2@acme.test")).toBeDefined();
  expect(screen.getByText("p1@acme.test")).toBeDefined();
});

it("gives an admin no say about an owner", async () => {
  serve();
  renderPage(<MembersPage />, { role: "admin" });
  expect(await screen.findByText("p2@acme.test")).toBeDefined();
  expect(screen.queryByRole("combobox", { name: "Role of p1@acme.test" })).toBeNull();
  expect(grantable("admin").map(({ value }) => value)).not.toContain("owner");
  expect([mayChange("admin", "viewer"), mayChange("developer", "viewer")]).toEqual([true, false]);
});

it("hands the link over once", async () => {
  const seen = serve();
  renderPage(<MembersPage />);
  await userEvent.click(screen.getByRole("button", { name: "Invite somebody" }));
  await userEvent.type(await screen.findByLabelText("E-mail"), "new@acme.test");
  await userEvent.click(screen.getByRole("button", { name: "Invite" }));
  expect(await screen.findByText("http://console/join#tok")).toBeDefined();
  const sent = seen.find(({ method }) => method === "POST");
  expect(await sent?.json()).toEqual({ email: "new@acme.test", role: "developer" });
});
