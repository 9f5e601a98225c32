import type { ComponentType } from "react";
import { createBrowserRouter, Navigate, type RouteObject } from "react-router";
import { useWorkspace } from "../session/context";
import type { Action } from "../session/permissions";
import { LoadingCards } from "../shared/LoadingCards";
import { NotFoundPage, PageFailed } from "./FallbackPages";
import { Needs, OperatorOnly, TenantOnly } from "./guards";
import { Shell } from "./Shell";

function Home() {
  const { membership } = useWorkspace();
  return <Navigate to={membership ? "/home" : "/tenants"} replace />;
}

type PageModule = { Component: ComponentType };

type Load = () => Promise<PageModule>;

/** A page with the style sheets that the first page does without. */
function styled(load: Load): Load {
  return async () => {
    const [found] = await Promise.all([load(), import("./pageStyles")]);
    return found;
  };
}

function page(path: string, action: Action, load: Load): RouteObject {
  const lazy = path === "home" ? load : styled(load);
  return { path, element: <Needs action={action} />, children: [{ index: true, lazy }] };
}

function operatorsPage(path: string, load: Load): RouteObject {
  return { path, lazy: styled(load) };
}

export const router = createBrowserRouter([
  {
    Component: Shell,
    HydrateFallback: LoadingCards,
    ErrorBoundary: PageFailed,
    children: [
      { index: true, Component: Home },
      {
        Component: TenantOnly,
        ErrorBoundary: PageFailed,
        children: [
          page("home", "usage:read", () => import("../home/HomePage")),
          page("adapters", "adapters:read", () => import("../adapters/AdaptersPage")),
          page(
            "adapters/:adapterId/evaluations",
            "adapters:read",
            () => import("../evaluations/EvaluationsPage"),
          ),
          page("batches", "usage:read", () => import("../batches/BatchesPage")),
          page("keys", "keys", () => import("../keys/KeysPage")),
          page("usage", "usage:read", () => import("../usage/UsagePage")),
          page("limits", "usage:read", () => import("../limits/LimitsPage")),
          page("webhooks", "webhooks", () => import("../webhooks/WebhooksPage")),
          page("billing", "billing:read", () => import("../billing/BillingPage")),
          page("members", "members", () => import("../members/MembersPage")),
          page("settings", "members", () => import("../settings/SettingsPage")),
          page("audit", "audit:read", () => import("../audit/AuditPage")),
          page("playground", "inference", () => import("../playground/PlaygroundPage")),
        ],
      },
      {
        Component: OperatorOnly,
        ErrorBoundary: PageFailed,
        children: [
          operatorsPage("fleet", () => import("../fleet/FleetPage")),
          operatorsPage("capacity", () => import("../capacity/CapacityPage")),
          operatorsPage("margin", () => import("../margin/MarginPage")),
          operatorsPage("tenants", () => import("../operator/TenantsPage")),
          operatorsPage(
            "tenants/:tenantId/billing",
            () => import("../tenantBilling/TenantBillingPage"),
          ),
          operatorsPage("discrepancies", () => import("../discrepancies/DiscrepanciesPage")),
          operatorsPage("people", () => import("../operator/PeoplePage")),
          operatorsPage("models", () => import("../operator/BaseModelsPage")),
          operatorsPage("jobs", () => import("../jobs/JobsPage")),
          operatorsPage("alerts", () => import("../operator/AlertsPage")),
          operatorsPage("health", () => import("../operator/HealthPage")),
          operatorsPage("audit-all", () => import("../operator/OperatorAuditPage")),
        ],
      },
      {
        path: "security",
        ErrorBoundary: PageFailed,
        lazy: styled(() => import("../security/SecurityPage")),
      },
      { path: "*", Component: NotFoundPage },
    ],
  },
]);
