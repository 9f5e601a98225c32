import { screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it } from "vitest";
import { SignInForm } from "../session/SignInForm";
import { fakeServer } from "../test/fakeServer";
import { renderPage } from "../test/renderPage";
import { aSession } from "../test/samples";
import { SecondFactorSection } from "./SecondFactorSection";

const off = { totp: false, passkeys: [], recovery_codes_left: 0 };
const on = { totp: true, passkeys: [], recovery_codes_left: 10 };

it("sets an app up: password, QR, first code, and the recovery codes once", async () => {
  const answers = [off, on];
  const seen = fakeServer({
    "GET /api/v1/account/second-factor": () => ({ body: answers.shift() ?? on }),
    "POST /api/v1/account/totp": {
      status: 201,
      body: { secret: "JBSWY3DPEHPK3PXP", uri: "otpauth://totp/x", qr: "data:image/svg+xml," },
    },
    "POST /api/v1/account/totp/confirm": { body: { recovery_codes: ["abcd-efgh-jkmn"] } },
  });
  renderPage(<SecondFactorSection />);
  await userEvent.click(await screen.findByRole("button", { name: "Set up" }));
  await userEvent.type(await screen.findByLabelText("Your password"), "secret words");
  await userEvent.click(screen.getByRole("button", { name: "Continue" }));
  expect(await screen.findByRole("img", { name: "QR code of the secret" })).toBeDefined();
  expect(screen.getByText("JBSWY3DPEHPK3PXP")).toBeDefined();
  await userEvent.type(screen.getByLabelText("The code that it shows"), "123 456");
  await userEvent.click(screen.getByRole("button", { name: "Turn on" }));
  expect(await screen.findByText("abcd-efgh-jkmn")).toBeDefined();
  await userEvent.click(screen.getByRole("button", { name: "I have kept them" }));
  await waitFor(() => expect(screen.queryByText("abcd-efgh-jkmn")).toBeNull());
  expect(await screen.findByText("10 left")).toBeDefined();
  const sent = seen.find(({ url }) => url.endsWith("/totp/confirm"));
  expect(await sent?.json()).toEqual({ code: "123 456" });
});

it("turns codes off with the password, and shows why it did not", async () => {
  fakeServer({
    "GET /api/v1/account/second-factor": { body: on },
    "POST /api/v1/account/totp/end": {
      status: 403,
      body: { error: { message: "password: this is not your password" } },
    },
  });
  renderPage(<SecondFactorSection />);
  await userEvent.click(await screen.findByRole("button", { name: "Turn off" }));
  await userEvent.type(await screen.findByLabelText("Your password"), "wrong");
  await userEvent.click(screen.getAllByRole("button", { name: "Turn off" }).at(-1) as HTMLElement);
  expect(await screen.findByText("password: this is not your password")).toBeDefined();
});

it("asks for a code after the password, and says when it is wrong", async () => {
  const answers = [
    { status: 401, body: { error: { message: "The code is wrong", code: "wrong_code" } } },
    { body: aSession() },
  ];
  const seen = fakeServer({
    "POST /api/v1/session": {
      status: 401,
      body: { error: { message: "x", code: "second_factor_required", factors: ["totp"] } },
    },
    "POST /api/v1/session/code": () => answers.shift() ?? {},
  });
  renderPage(<SignInForm email="ann@acme.test" />);
  await userEvent.type(screen.getByLabelText("Password"), "secret words");
  await userEvent.click(screen.getByRole("button", { name: "Sign in" }));
  await userEvent.type(await screen.findByLabelText("Code"), "123456");
  expect(screen.queryByRole("button", { name: "Use a passkey" })).toBeNull();
  await userEvent.click(screen.getByRole("button", { name: "Continue" }));
  expect(await screen.findByText("The code is wrong")).toBeDefined();
  await userEvent.click(screen.getByRole("button", { name: "Continue" }));
  await waitFor(() => expect(screen.queryByText("The code is wrong")).toBeNull());
  expect(seen.filter(({ url }) => url.endsWith("/session/code")).length).toBe(2);
});
