import { useLocalStorage } from "@mantine/hooks";
import { type ReactNode, useMemo } from "react";
import { createApi } from "../api/client";
import { useLiveEvents } from "../api/live";
import type { Membership, Session } from "../api/types";
import { setCurrency } from "../shared/money";
import { WorkspaceContext } from "./context";
import type { SessionGate } from "./gate";

/** While an operator acts for a tenant every page is about that one. */
function membershipIn({ on_behalf, memberships }: Session, chosen: string): Membership | null {
  if (on_behalf) return { tenant: on_behalf.tenant, role: "operator", barred: null };
  return memberships.find((m) => m.tenant.id === chosen) ?? memberships[0] ?? null;
}

interface Props {
  session: Session;
  /** Where requests wait when the session has ended. */
  gate?: SessionGate;
  children: ReactNode;
}

/** Chooses the tenant (the one last chosen in this browser, else the first) and gives its client to the pages. */
export function WorkspaceProvider({ session, gate, children }: Props) {
  const [chosen, setChosen] = useLocalStorage({
    key: "veneer-tenant",
    defaultValue: "",
    getInitialValueInEffect: false,
  });
  setCurrency(session.currency); // before any page says an amount; it is the same for everybody
  const membership = membershipIn(session, chosen);
  const tenantId = membership?.tenant.id ?? null;
  const { up: live, watchFleet } = useLiveEvents(tenantId, session.user.is_operator);
  const api = useMemo(() => createApi(tenantId, gate), [tenantId, gate]);
  const workspace = useMemo(
    () => ({ session, membership, api, live, watchFleet, selectTenant: setChosen }),
    [session, membership, api, live, watchFleet, setChosen],
  );
  return <WorkspaceContext.Provider value={workspace}>{children}</WorkspaceContext.Provider>;
}
