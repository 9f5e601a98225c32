import { createBrowserRouter, Navigate } from "react-router";
import { useWorkspace } from "../session/context";
import { LoadingCards } from "../shared/LoadingCards";
import { NotFoundPage, PageFailed } from "./FallbackPages";
import { OperatorOnly, TenantOnly } from "./guards";
import { Shell } from "./Shell";

function Home() {
  const { membership } = useWorkspace();
  return <Navigate to={membership ? "/adapters" : "/tenants"} replace />;
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
          { path: "adapters", lazy: () => import("../adapters/AdaptersPage") },
          { path: "keys", lazy: () => import("../keys/KeysPage") },
          { path: "usage", lazy: () => import("../usage/UsagePage") },
          { path: "playground", lazy: () => import("../playground/PlaygroundPage") },
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
