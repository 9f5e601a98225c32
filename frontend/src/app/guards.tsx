import { IconBuildingCommunity } from "@tabler/icons-react";
import { Outlet } from "react-router";
import { useWorkspace } from "../session/context";
import { EmptyState } from "../shared/EmptyState";
import { NotFoundPage } from "./FallbackPages";

/** Pages about a tenant. Keyed by it, so that nothing of one tenant's page survives a switch. */
export function TenantOnly() {
  const { membership } = useWorkspace();
  if (!membership) {
    return (
      <EmptyState icon={IconBuildingCommunity} title="You belong to no tenant">
        Ask an owner of the tenant, or the platform's operator, to add you. Then reload this page.
      </EmptyState>
    );
  }
  return <Outlet key={membership.tenant.id} />;
}

export function OperatorOnly() {
  const { session } = useWorkspace();
  return session.user.is_operator ? <Outlet /> : <NotFoundPage />;
}
