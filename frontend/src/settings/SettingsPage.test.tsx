import { screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it } from "vitest";
import { fakeServer } from "../test/fakeServer";
import { renderPage } from "../test/renderPage";
import { Component as SettingsPage } from "./SettingsPage";

const EMPTY = {
  redirect_uri: "https://veneer.test/sign-in/company",
  provider: null,
  is_required: false,
  domains: [],
};
const SET = {
  ...EMPTY,
  provider: {
    issuer: "https://login.acme.test",
    client_id: "veneer",
    default_role: "developer",
    created_at: "2026-03-01T10:00:00Z",
  },
  domains: [
    {
      id: "dom_1",
      name: "acme.test",
      confirmed_at: null,
      proof_url: "https://acme.test/.well-known/veneer-sign-in.txt",
      proof_line: "veneer-sign-in=abc",
    },
  ],
};

it("sets a provider up, and shows why it is not taken", async () => {
  const answers = [
    { status: 400, body: { error: { message: "issuer: it calls itself something else" } } },
    { body: SET },
  ];
  const seen = fakeServer({
    "GET /api/v1/tenant/single-sign-on": { body: EMPTY },
    "PUT /api/v1/tenant/single-sign-on": () => answers.shift() ?? {},
  });
  renderPage(<SettingsPage />);
  expect(await screen.findByText("https://veneer.test/sign-in/company")).toBeDefined();
  await userEvent.click(screen.getByRole("button", { name: "Save" }));
  expect(await screen.findByText("Enter the client id")).toBeDefined();
  await userEvent.type(screen.getByLabelText("Issuer"), "https://login.acme.test");
  await userEvent.type(screen.getByLabelText("Client id"), "veneer");
  await userEvent.type(screen.getByLabelText("Client secret"), "s3cret");
  await userEvent.click(screen.getByRole("button", { name: "Save" }));
  expect(await screen.findByText("issuer: it calls itself something else")).toBeDefined();
  const sent = seen.find(({ method }) => method === "PUT");
  expect(await sent?.json()).toEqual({
    issuer: "https://login.acme.test",
    client_id: "veneer",
    client_secret: "s3cret",
    default_role: "viewer",
    is_required: false,
  });
});

it("keeps a secret that is not typed anew", async () => {
  const seen = fakeServer({
    "GET /api/v1/tenant/single-sign-on": { body: SET },
    "PUT /api/v1/tenant/single-sign-on": { body: SET },
  });
  renderPage(<SettingsPage />);
  await userEvent.click(await screen.findByRole("switch", { name: /Members must/ }));
  await userEvent.click(screen.getByRole("button", { name: "Save" }));
  await waitFor(() => expect(seen.some(({ method }) => method === "PUT")).toBe(true));
  const body = await seen.find(({ method }) => method === "PUT")?.json();
  expect(body).toEqual({
    issuer: "https://login.acme.test",
    client_id: "veneer",
    default_role: "developer",
    is_required: true,
  });
});

it("looks for the proof of a domain, and adds another", async () => {
  const seen = fakeServer({
    "GET /api/v1/tenant/single-sign-on": { body: SET },
    "POST /api/v1/tenant/single-sign-on/domains/dom_1/confirm": {
      status: 409,
      body: { error: { message: "it answers 404" } },
    },
    "POST /api/v1/tenant/single-sign-on/domains": { status: 201, body: SET.domains[0] },
  });
  renderPage(<SettingsPage />);
  expect(await screen.findByText("veneer-sign-in=abc")).toBeDefined();
  await userEvent.click(screen.getByRole("button", { name: "Look for the line of acme.test" }));
  expect(await screen.findByText("it answers 404")).toBeDefined();
  await userEvent.type(screen.getByLabelText("Domain"), "acme.example");
  await userEvent.click(screen.getByRole("button", { name: "Add domain" }));
  await waitFor(() => expect(seen.at(-1)?.method).toBe("GET"));
  const added = seen.find(({ url, method }) => method === "POST" && url.endsWith("/domains"));
  expect(await added?.json()).toEqual({ name: "acme.example" });
});
