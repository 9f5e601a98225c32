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

function page(path: string, action: Action, lazy: () => Promise<PageModule>): RouteObject {
  return { path, element: <Needs action={action} />, children: [{ index: true, lazy }] };
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
          { path: "fleet", lazy: () => import("../fleet/FleetPage") },
          { path: "capacity", lazy: () => import("../capacity/CapacityPage") },
          { path: "margin", lazy: () => import("../margin/MarginPage") },
          { path: "tenants", lazy: () => import("../operator/TenantsPage") },
          { path: "discrepancies", lazy: () => import("../discrepancies/DiscrepanciesPage") },
          { path: "people", lazy: () => import("../operator/PeoplePage") },
          { path: "models", lazy: () => import("../operator/BaseModelsPage") },
          { path: "jobs", lazy: () => import("../jobs/JobsPage") },
          { path: "alerts", lazy: () => import("../operator/AlertsPage") },
          { path: "health", lazy: () => import("../operator/HealthPage") },
          { path: "audit-all", lazy: () => import("../operator/OperatorAuditPage") },
        ],
      },
      {
        path: "security",
        ErrorBoundary: PageFailed,
        lazy: () => import("../security/SecurityPage"),
      },
      { path: "*", Component: NotFoundPage },
    ],
  },
]);
