import { screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it } from "vitest";
import { fakeServer } from "../test/fakeServer";
import { renderPage } from "../test/renderPage";
import { Component as SecurityPage } from "./SecurityPage";

const session = (id: string, device: string, is_this: boolean) => ({
  id,
  device,
  is_this,
  address: "203.0.113.5",
  created_at: "2026-03-01T10:00:00Z",
  seen_at: "2026-03-01T10:05:00Z",
});

function serve(
  sessions = [
    session("ses_1", "Firefox on Linux", true),
    session("ses_2", "Safari on iPhone", false),
  ],
) {
  return fakeServer({
    "GET /api/v1/account/sessions": { body: { data: sessions, next: null } },
    "DELETE /api/v1/account/sessions/ses_2": { status: 204 },
    "PUT /api/v1/account/password": {
      status: 403,
      body: { error: { message: "old_password: this is not your password" } },
    },
  });
}

it("shows where one is signed in, and ends what is not this", async () => {
  const seen = serve();
  renderPage(<SecurityPage />);
  const row = (await screen.findByText("Firefox on Linux")).closest("tr") as HTMLElement;
  expect(within(row).getByText("this one")).toBeDefined();
  expect(within(row).queryByRole("button")).toBeNull();
  await userEvent.click(
    screen.getByRole("button", { name: "End the session of Safari on iPhone at 203.0.113.5" }),
  );
  await waitFor(() => expect(seen.some(({ method }) => method === "DELETE")).toBe(true));
});

it("offers to end all others only where there are any", async () => {
  serve([session("ses_1", "Firefox on Linux", true)]);
  renderPage(<SecurityPage />);
  await screen.findByText("Firefox on Linux");
  expect(screen.queryByRole("button", { name: "End all others" })).toBeNull();
});

it("changes the password with the old one, and says why it did not", async () => {
  const seen = serve();
  renderPage(<SecurityPage />);
  await userEvent.click(screen.getByRole("button", { name: "Change password" }));
  await userEvent.type(await screen.findByLabelText("Password now"), "old one");
  await userEvent.type(screen.getByLabelText("New password"), "brand new one");
  await userEvent.click(screen.getByRole("button", { name: "Change" }));
  expect(await screen.findByText("old_password: this is not your password")).toBeDefined();
  const sent = seen.find(({ method }) => method === "PUT");
  expect(await sent?.json()).toEqual({ old_password: "old one", new_password: "brand new one" });
});
