import { screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it } from "vitest";
import { fakeServer } from "../test/fakeServer";
import { renderPage } from "../test/renderPage";
import { aSession } from "../test/samples";
import { JoinPage } from "./JoinPage";

function serve(has_account: boolean) {
  return fakeServer({
    "POST /api/v1/invitations/look": {
      body: { email: "ann@acme.test", tenant_name: "Globex", role: "viewer", has_account },
    },
    "POST /api/v1/invitations/accept": {
      status: 400,
      body: { error: { message: "password: too short" } },
    },
  });
}

it("asks a new person for a password, and says why one will not do", async () => {
  const seen = serve(false);
  renderPage(<JoinPage token="tok" session={null} />);
  expect(await screen.findByText("Join Globex")).toBeDefined();
  await userEvent.type(screen.getByLabelText(/Choose a password/), "short");
  await userEvent.click(screen.getByRole("button", { name: "Accept" }));
  expect(await screen.findByText("password: too short")).toBeDefined();
  expect(await seen.at(-1)?.json()).toEqual({ token: "tok", password: "short" });
});

it("asks whoever has an account to sign in", async () => {
  serve(true);
  renderPage(<JoinPage token="tok" session={null} />);
  expect(await screen.findByRole("button", { name: "Sign in" })).toBeDefined();
  expect(screen.getByLabelText<HTMLInputElement>("E-mail").value).toBe("ann@acme.test");
});

it("asks a member for nothing but their word", async () => {
  serve(true);
  renderPage(<JoinPage token="tok" session={aSession()} />);
  expect(await screen.findByRole("button", { name: "Accept" })).toBeDefined();
  expect(screen.queryByLabelText(/password/i)).toBeNull();
});

it("tells somebody else so, and a dead link what it is", async () => {
  serve(true);
  const other = aSession({ user: { id: "usr_2", email: "bob@x.test", is_operator: false } });
  renderPage(<JoinPage token="tok" session={other} />);
  expect(await screen.findByText("You are signed in as somebody else")).toBeDefined();
  fakeServer({});
  renderPage(<JoinPage token="dead" session={null} />);
  expect(await screen.findByText("This link opens nothing")).toBeDefined();
});
