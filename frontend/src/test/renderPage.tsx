import { MantineProvider } from "@mantine/core";
import { ModalsProvider } from "@mantine/modals";
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { render } from "@testing-library/react";
import type { ReactNode } from "react";
import { MemoryRouter } from "react-router";
import { createApi } from "../api/client";
import type { Role } from "../api/types";
import { WorkspaceContext } from "../session/context";
import { aSession } from "./samples";

/** A page as the shell would show it, to a member of one tenant, without the event socket. */
export function renderPage(page: ReactNode, { role = "owner" as Role, path = "/" } = {}) {
  const session = aSession();
  const membership = { ...session.memberships[0], role } as (typeof session.memberships)[number];
  const workspace = {
    session,
    membership,
    api: createApi(membership.tenant.id),
    live: true,
    watchFleet: () => () => undefined,
    selectTenant: () => undefined,
  };
  const queries = new QueryClient({ defaultOptions: { queries: { retry: false } } });
  return render(
    <QueryClientProvider client={queries}>
      <MantineProvider env="test">
        <ModalsProvider>
          <WorkspaceContext.Provider value={workspace}>
            <MemoryRouter initialEntries={[path]}>{page}</MemoryRouter>
          </WorkspaceContext.Provider>
        </ModalsProvider>
      </MantineProvider>
    </QueryClientProvider>,
  );
}
