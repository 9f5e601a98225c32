import { screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it, vi } from "vitest";
import { fakeServer } from "../test/fakeServer";
import { renderPage } from "../test/renderPage";
import { aSession } from "../test/samples";
import { CompanyReturnPage } from "./CompanyReturnPage";
import { SignInForm } from "./SignInForm";

it("leaves for the company that an address or a short name leads to", async () => {
  const [real, assign] = [location, vi.fn()];
  vi.stubGlobal("location", { origin: real.origin, assign });
  const answers = [
    { status: 404, body: { error: { message: "no company signs its people in" } } },
    { body: { url: "https://login.acme.test/authorize?state=s" } },
  ];
  const seen = fakeServer({ "POST /api/v1/session/company": () => answers.shift() ?? {} });
  renderPage(<SignInForm email="ann@acme.test" />);
  await userEvent.click(screen.getByRole("button", { name: "Company sign-in" }));
  await userEvent.click(screen.getByRole("button", { name: "Go to my company" }));
  expect(await screen.findByText("no company signs its people in")).toBeDefined();
  const field = screen.getByLabelText(/Work e-mail/);
  await userEvent.clear(field);
  await userEvent.type(field, "acme");
  await userEvent.click(screen.getByRole("button", { name: "Go to my company" }));
  await waitFor(() =>
    expect(assign).toHaveBeenCalledWith("https://login.acme.test/authorize?state=s"),
  );
  expect(await seen[0]?.json()).toEqual({ email: "ann@acme.test" });
  expect(await seen[1]?.json()).toEqual({ tenant: "acme" });
  vi.stubGlobal("location", real);
});

it("hands over once what the company sent back, and is done", async () => {
  const seen = fakeServer({ "POST /api/v1/session/company/finish": { body: aSession() } });
  const done = vi.fn();
  renderPage(<CompanyReturnPage query="?code=c-1&state=s-1" onDone={done} />);
  await waitFor(() => expect(done).toHaveBeenCalledOnce());
  expect(seen.length).toBe(1);
  expect(await seen[0]?.json()).toEqual({ code: "c-1", state: "s-1" });
});

it("shows why the token was not believed", async () => {
  fakeServer({
    "POST /api/v1/session/company/finish": {
      status: 401,
      body: { error: { message: "its token has expired" } },
    },
  });
  renderPage(<CompanyReturnPage query="?code=c-2&state=s-2" onDone={() => undefined} />);
  expect(await screen.findByText("its token has expired")).toBeDefined();
});

it("repeats a refusal's word, and no other text that somebody put into the address", () => {
  const seen = fakeServer({});
  renderPage(<CompanyReturnPage query="?error=access_denied" onDone={() => undefined} />);
  expect(screen.getByRole("alert").textContent).toContain("(access_denied)");
  renderPage(<CompanyReturnPage query="?error=Call+us+at+555" onDone={() => undefined} />);
  expect(screen.queryByText(/555/)).toBeNull();
  expect(seen).toEqual([]);
});
