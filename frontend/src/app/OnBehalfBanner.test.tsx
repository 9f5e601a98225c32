import { screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it } from "vitest";
import { ActForButton, SuspendButton } from "../operator/TenantControls";
import { WorkspaceProvider } from "../session/WorkspaceProvider";
import { fakeServer } from "../test/fakeServer";
import { renderPage } from "../test/renderPage";
import { aSession } from "../test/samples";
import { OnBehalfBanner } from "./OnBehalfBanner";
import { TenantSwitcher } from "./TenantSwitcher";

const tenant = {
  id: "ten_1",
  slug: "acme",
  name: "Acme",
  is_active: true,
  created_at: "2026-03-01T10:00:00Z",
};
const acting = aSession({
  user: { id: "usr_1", email: "op@veneer.test", is_operator: true },
  memberships: [],
  on_behalf: {
    tenant: { id: "ten_1", slug: "acme", name: "Acme" },
    reason: "ticket 4711",
    expires_at: new Date(Date.now() + 3_600_000).toISOString(),
  },
});

it("says whom an operator acts for, and ends it", async () => {
  const seen = fakeServer({ "POST /api/v1/operator/act-for/end": { body: aSession() } });
  renderPage(
    <WorkspaceProvider session={acting}>
      <TenantSwitcher />
      <OnBehalfBanner />
    </WorkspaceProvider>,
  );
  expect(screen.getByRole("status").textContent).toContain("You act for Acme until");
  expect(screen.getByRole("status").textContent).toContain("ticket 4711");
  await userEvent.click(screen.getByRole("button", { name: "End" }));
  await waitFor(() => expect(seen.length).toBe(1));
});

it("is not there for anybody else", () => {
  renderPage(<OnBehalfBanner />);
  expect(screen.queryByRole("status")).toBeNull();
});

it("asks an operator for a reason before acting and before suspending", async () => {
  const seen = fakeServer({
    "POST /api/v1/operator/tenants/ten_1/act-for": { body: acting },
    "POST /api/v1/operator/tenants/ten_1/suspend": { body: { ...tenant, is_active: false } },
  });
  renderPage(
    <>
      <ActForButton tenant={tenant} />
      <SuspendButton tenant={tenant} />
    </>,
  );
  await userEvent.click(screen.getByRole("button", { name: "Act for Acme" }));
  await userEvent.click(await screen.findByRole("button", { name: "Start" }));
  expect(await screen.findByText("Enter a reason")).toBeDefined();
  expect(seen.length).toBe(0);
  await userEvent.type(screen.getByLabelText("Reason"), "ticket 4711");
  await userEvent.click(screen.getByRole("button", { name: "Start" }));
  await waitFor(() => expect(seen.length).toBe(1));
  expect(await seen[0]?.json()).toEqual({ reason: "ticket 4711" });
});
