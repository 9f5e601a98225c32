import type { ComponentType } from "react";
import { createBrowserRouter, Navigate, type RouteObject } from "react-router";
import type { Role } from "../api/types";
import { useWorkspace } from "../session/context";
import { roleCan } from "../session/permissions";
import { LoadingCards } from "../shared/LoadingCards";
import { NotFoundPage, PageFailed } from "./FallbackPages";
import {
  AdapterReaders,
  KeyHolders,
  ModelCallers,
  OperatorOnly,
  TenantOnly,
  UsageReaders,
} from "./guards";
import { Shell } from "./Shell";

function firstPage(role: Role): string {
  return roleCan(role, "adapters:read") ? "/adapters" : "/usage";
}

function Home() {
  const { membership } = useWorkspace();
  const first = membership ? firstPage(membership.role) : "/tenants";
  return <Navigate to={first} replace />;
}

type PageModule = { Component: ComponentType };

function page(path: string, Guard: ComponentType, lazy: () => Promise<PageModule>): RouteObject {
  return { path, Component: Guard, children: [{ index: true, lazy }] };
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
          page("adapters", AdapterReaders, () => import("../adapters/AdaptersPage")),
          page("keys", KeyHolders, () => import("../keys/KeysPage")),
          page("usage", UsageReaders, () => import("../usage/UsagePage")),
          page("playground", ModelCallers, () => import("../playground/PlaygroundPage")),
        ],
      },
      {
        Component: OperatorOnly,
        ErrorBoundary: PageFailed,
        children: [{ path: "tenants", lazy: () => import("../operator/TenantsPage") }],
      },
      { path: "*", Component: NotFoundPage },
    ],
  },
]);
