import { screen } from "@testing-library/react";
import { expect, it } from "vitest";
import { fakeServer } from "../test/fakeServer";
import { renderPage } from "../test/renderPage";
import { Component as JobsPage } from "./JobsPage";
import { everyWords } from "./TaskTable";

const task = (name: string, fields = {}) => ({
  name,
  every_seconds: 2,
  at: "2026-03-01T10:00:00Z",
  seconds: 0.25,
  state: "success",
  error: null,
  succeeded: 12,
  failed: 0,
  retried: 0,
  ...fields,
});

it("shows how each task went, and the failures of the one looked for", async () => {
  fakeServer({
    "GET /api/v1/operator/jobs": {
      body: {
        tasks: [
          task("inference.ingest_journal", {
            state: "failure",
            error: "OperationalError",
            failed: 3,
          }),
          task("billing.close_periods", {
            at: null,
            seconds: null,
            state: null,
            every_seconds: 300,
          }),
        ],
        running: [
          { name: "adapters.check_version", worker: "celery@here", since: "2026-03-01T10:00:00Z" },
        ],
        queues: [{ name: "celery", waiting: 4 }],
        failures: [
          {
            name: "inference.ingest_journal",
            at: "2026-03-01T10:00:00Z",
            state: "failure",
            error: "OperationalError",
          },
        ],
      },
    },
  });
  renderPage(<JobsPage />, { path: "/jobs?search=ingest" });
  expect(await screen.findByText("failure: OperationalError")).toBeDefined();
  expect(screen.getByText("celery@here")).toBeDefined();
  expect(screen.getByText("Waiting: celery")).toBeDefined();
  expect(screen.queryByText("billing.close_periods")).toBeNull();
  expect(screen.getByText("OperationalError: the worker's log has all of it")).toBeDefined();
});

it("asks for adapters in the state that the address names, and says so where there are none", async () => {
  const seen = fakeServer({
    "GET /api/v1/operator/incoming": { body: { data: [], next: null } },
  });
  renderPage(<JobsPage />, { path: "/jobs?show=adapters&state=rejected&search=pirate" });
  expect(await screen.findByText("No such adapter")).toBeDefined();
  const [asked] = seen.map(({ url }) => Object.fromEntries(new URL(url).searchParams));
  expect(asked).toEqual({ state: "rejected", search: "pirate" });
});

it("shows what the server says where the record is away", async () => {
  fakeServer({
    "GET /api/v1/operator/jobs": { status: 503, body: { error: { message: "Valkey is away." } } },
  });
  renderPage(<JobsPage />);
  expect(await screen.findByText("Valkey is away.")).toBeDefined();
});

it("says how often as people do", () => {
  expect([2, 60, 300, 3600].map(everyWords)).toEqual([
    "every 2 s",
    "every minute",
    "every 5 min",
    "every hour",
  ]);
});
