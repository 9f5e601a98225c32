import { createContext, useContext } from "react";
import type { Api } from "../api/client";
import type { Membership, Session } from "../api/types";

export interface Workspace {
  session: Session;
  /** The tenant that the pages are about; null for an operator who belongs to none. */
  membership: Membership | null;
  api: Api;
  /** True while the event socket is up; pages poll while it is not. */
  live: boolean;
  /** For operators: frames of the fleet go into the cache until the function that comes back is called. */
  watchFleet: () => () => void;
  selectTenant: (tenantId: string) => void;
}

export const WorkspaceContext = createContext<Workspace | null>(null);

export function useWorkspace(): Workspace {
  const workspace = useContext(WorkspaceContext);
  if (!workspace) throw new Error("useWorkspace needs a WorkspaceProvider above it");
  return workspace;
}

/** The parts a tenant page needs; only rendered below `TenantOnly`. */
export function useTenant(): Workspace & { tenantId: string } {
  const workspace = useWorkspace();
  if (!workspace.membership) throw new Error("useTenant needs a membership");
  return { ...workspace, tenantId: workspace.membership.tenant.id };
}
