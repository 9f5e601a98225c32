import { screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it } from "vitest";
import { fakeServer } from "../test/fakeServer";
import { renderPage } from "../test/renderPage";
import { Component as PeoplePage } from "./PeoplePage";

const person = (id: number, is_active = true) => ({
  id: `usr_${id}`,
  email: `p${id}@acme.test`,
  is_operator: id === 1,
  is_active,
  created_at: "2026-03-01T10:00:00Z",
  tenants: ["acme"],
});

it("shows a link once, and offers nobody to shut themselves out", async () => {
  fakeServer({
    "GET /api/v1/operator/people": { body: { data: [person(1), person(2)], next: null } },
    "POST /api/v1/operator/people/usr_2/reset-link": {
      status: 201,
      body: { link: "http://console/reset#tok", lifetime_seconds: 86400 },
    },
  });
  renderPage(<PeoplePage />);
  await screen.findByText("p2@acme.test");
  expect(screen.queryByRole("button", { name: "Shut out p1@acme.test" })).toBeNull();
  await userEvent.click(
    screen.getByRole("button", { name: "Link to a new password for p2@acme.test" }),
  );
  expect(await screen.findByText("http://console/reset#tok")).toBeDefined();
  await userEvent.click(screen.getByRole("button", { name: "Done" }));
  await waitFor(() => expect(screen.queryByText("http://console/reset#tok")).toBeNull());
});

it("lets somebody in again", async () => {
  const seen = fakeServer({
    "GET /api/v1/operator/people": { body: { data: [person(2, false)], next: null } },
    "PATCH /api/v1/operator/people/usr_2": { body: person(2) },
  });
  renderPage(<PeoplePage />);
  await userEvent.click(await screen.findByRole("button", { name: "Let in p2@acme.test" }));
  await waitFor(() => expect(seen.some(({ method }) => method === "PATCH")).toBe(true));
  const sent = seen.find(({ method }) => method === "PATCH");
  expect(await sent?.json()).toEqual({ is_active: true });
});
