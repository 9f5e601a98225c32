import { useMutation, useQueryClient } from "@tanstack/react-query";
import { bodyOf } from "../api/client";
import type { Tenant } from "../api/types";
import { useWorkspace } from "../session/context";

export function useActFor(tenantId: string) {
  const { api } = useWorkspace();
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (reason: string) =>
      bodyOf(
        api.POST("/api/v1/operator/tenants/{tenant_id}/act-for", {
          params: { path: { tenant_id: tenantId } },
          body: { reason },
        }),
      ),
    onSuccess: (session) => queries.setQueryData(["session"], session),
  });
}

export function useSetSuspended(tenant: Tenant) {
  const { api } = useWorkspace();
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (reason: string) => {
      const call = { params: { path: { tenant_id: tenant.id } }, body: { reason } };
      return bodyOf(
        tenant.is_active
          ? api.POST("/api/v1/operator/tenants/{tenant_id}/suspend", call)
          : api.POST("/api/v1/operator/tenants/{tenant_id}/reactivate", call),
      );
    },
    onSuccess: () => queries.invalidateQueries({ queryKey: ["operator", "tenants"] }),
  });
}
