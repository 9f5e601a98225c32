import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { bodyOf } from "../api/client";
import type { components } from "../api/schema";
import type { Adapter, AdapterGrant } from "../api/types";
import { useTenant } from "../session/context";

export type Markup = components["schemas"]["Markup"];

/** Those in force that the tenant asks and pays, and what the platform allows. */
export function useMarkups() {
  const { api, tenantId } = useTenant();
  return useQuery({
    queryKey: [tenantId, "markups"],
    queryFn: () => bodyOf(api.GET("/api/v1/markups")),
  });
}

/** An amount as text; "0" ends it. */
export function useSetMarkup(adapter: Adapter, grant: AdapterGrant) {
  const { api, tenantId } = useTenant();
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (perMillion: string) =>
      bodyOf(
        api.PUT("/api/v1/adapters/{adapter_id}/grants/{grant_id}/markup", {
          params: { path: { adapter_id: adapter.id, grant_id: grant.id } },
          body: { per_million: perMillion },
        }),
      ),
    onSettled: () => queries.invalidateQueries({ queryKey: [tenantId, "markups"] }),
  });
}
