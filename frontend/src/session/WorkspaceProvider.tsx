import { useLocalStorage } from "@mantine/hooks";
import { type ReactNode, useMemo } from "react";
import { createApi } from "../api/client";
import { useLiveEvents } from "../api/live";
import type { Session } from "../api/types";
import { WorkspaceContext } from "./context";

/** Chooses the tenant (the one last chosen in this browser, else the first) and gives its client to the pages. */
export function WorkspaceProvider({
  session,
  children,
}: {
  session: Session;
  children: ReactNode;
}) {
  const [chosen, setChosen] = useLocalStorage({
    key: "veneer-tenant",
    defaultValue: "",
    getInitialValueInEffect: false,
  });
  const { memberships } = session;
  const membership = memberships.find((m) => m.tenant.id === chosen) ?? memberships[0] ?? null;
  const tenantId = membership?.tenant.id ?? null;
  const live = useLiveEvents(tenantId);
  const api = useMemo(() => createApi(tenantId), [tenantId]);
  const workspace = useMemo(
    () => ({ session, membership, api, live, selectTenant: setChosen }),
    [session, membership, api, live, setChosen],
  );
  return <WorkspaceContext.Provider value={workspace}>{children}</WorkspaceContext.Provider>;
}
