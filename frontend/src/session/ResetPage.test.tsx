import { screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it } from "vitest";
import { fakeServer } from "../test/fakeServer";
import { renderPage } from "../test/renderPage";
import { ResetPage } from "./ResetPage";
import { SignInForm } from "./SignInForm";

it("says why a password will not do, and then that it is set", async () => {
  const answers = [
    { status: 400, body: { error: { message: "password: too short" } } },
    { status: 204 },
  ];
  const seen = fakeServer({ "POST /api/v1/account/password/new": () => answers.shift() ?? {} });
  renderPage(<ResetPage token="tok" />);
  await userEvent.type(screen.getByLabelText(/New password/), "short");
  await userEvent.click(screen.getByRole("button", { name: "Set the password" }));
  expect(await screen.findByText("password: too short")).toBeDefined();
  await userEvent.click(screen.getByRole("button", { name: "Set the password" }));
  expect(await screen.findByText("Your password is set")).toBeDefined();
  expect(await seen[0]?.json()).toEqual({ token: "tok", password: "short" });
});

it("mails a link to whoever forgot, and shows where there is no mail", async () => {
  const answers = [
    { status: 503, body: { error: { message: "This server sends no mail" } } },
    { status: 202, body: null },
  ];
  fakeServer({ "POST /api/v1/account/password/reset": () => answers.shift() ?? {} });
  renderPage(<SignInForm email="ann@acme.test" />);
  await userEvent.click(screen.getByRole("button", { name: "Forgotten your password?" }));
  await userEvent.click(screen.getByRole("button", { name: "Mail me a link" }));
  expect(await screen.findByText("This server sends no mail")).toBeDefined();
  await userEvent.click(screen.getByRole("button", { name: "Mail me a link" }));
  expect(await screen.findByText(/If the account exists/)).toBeDefined();
});
