import { screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it } from "vitest";
import type { Webhook } from "../api/types";
import { fakeServer } from "../test/fakeServer";
import { renderPage } from "../test/renderPage";
import { Component as WebhooksPage } from "./WebhooksPage";

const webhook: Webhook = {
  id: "whk_1",
  url: "https://acme.test/hook",
  kinds: ["adapter.ready"],
  failures: 0,
  failing_since: null,
  disabled_at: null,
  disabled_reason: null,
  created_at: "2026-03-01T00:00:00Z",
};
const delivery = {
  id: 7,
  alert: {
    id: "alr_1",
    kind: "adapter.rejected",
    subject: "adv_1",
    data: { name: "pirate" },
    mailed_at: null,
    created_at: "2026-03-01T00:00:00Z",
  },
  state: "failed",
  next_at: null,
  attempts: [
    { status: 503, error: null, excerpt: "busy", duration_ms: 41, at: "2026-03-01T00:00:01Z" },
    {
      status: null,
      error: "timed out",
      excerpt: "",
      duration_ms: 9999,
      at: "2026-03-01T00:01:00Z",
    },
  ],
  created_at: "2026-03-01T00:00:00Z",
};

function serve(webhooks: Webhook[], more: Parameters<typeof fakeServer>[0] = {}) {
  return fakeServer({
    "GET /api/v1/webhooks": { body: { data: webhooks, next: null } },
    "GET /api/v1/webhooks/whk_1/deliveries": { body: { data: [delivery], next: null } },
    ...more,
  });
}

it("shows a new secret once", async () => {
  const secret = "whsec_abc";
  const seen = serve([], {
    "POST /api/v1/webhooks": { status: 201, body: { ...webhook, secret } },
  });
  renderPage(<WebhooksPage />);
  expect(await screen.findByText("No webhooks yet")).toBeDefined();
  await userEvent.click(screen.getByRole("button", { name: "Add a webhook" }));
  await userEvent.type(await screen.findByLabelText("Address"), "nonsense");
  await userEvent.click(within(screen.getByRole("dialog")).getByText("Add the webhook"));
  expect(
    await screen.findByText("Use a whole address, such as https://example.com/hook"),
  ).toBeDefined();
  await userEvent.clear(screen.getByLabelText("Address"));
  await userEvent.type(screen.getByLabelText("Address"), "https://acme.test/hook");
  await userEvent.click(within(screen.getByRole("dialog")).getByText("Add the webhook"));
  expect(await screen.findByText(secret)).toBeDefined();
  const post = seen.find(({ method }) => method === "POST");
  expect(await post?.json()).toEqual({ url: "https://acme.test/hook", kinds: [] });
});

it("shows every attempt, and sends again", async () => {
  const seen = serve([webhook], {
    "POST /api/v1/deliveries/7/resend": { body: { ...delivery, state: "pending" } },
  });
  renderPage(<WebhooksPage />);
  await userEvent.click(await screen.findByRole("button", { name: "Deliveries" }));
  await userEvent.click(await screen.findByText("An adapter was rejected"));
  expect(await screen.findByText(/answered 503, after 41 ms/)).toBeDefined();
  expect(screen.getByText(/timed out, after 10.00 s/)).toBeDefined();
  await userEvent.click(await screen.findByRole("button", { name: "Send again" }));
  expect(seen.some(({ method, url }) => method === "POST" && url.endsWith("/7/resend"))).toBe(true);
});

it("says why one was switched off, and switches it on", async () => {
  const off = {
    ...webhook,
    disabled_at: "2026-03-02T00:00:00Z",
    disabled_reason: "12 failures in a row",
  };
  const seen = serve([off], { "PATCH /api/v1/webhooks/whk_1": { body: webhook } });
  renderPage(<WebhooksPage />);
  expect(await screen.findByText(/12 failures in a row/)).toBeDefined();
  await userEvent.click(screen.getByRole("button", { name: "Switch on" }));
  const patch = seen.find(({ method }) => method === "PATCH");
  expect(await patch?.json()).toEqual({ enabled: true });
});
