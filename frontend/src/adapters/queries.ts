import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { bodyOf } from "../api/client";
import type { Adapter, Split } from "../api/types";
import { useTenant } from "../session/context";

const POLL_MS = 3_000;

export function useAdapters() {
  const { api, tenantId, live } = useTenant();
  return useQuery({
    queryKey: [tenantId, "adapters"],
    queryFn: async () => (await bodyOf(api.GET("/api/v1/adapters"))).data,
    refetchInterval: live ? false : POLL_MS,
  });
}

export function useSetAlias(adapter: Adapter) {
  const { api, tenantId } = useTenant();
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (splits: Split[]) =>
      bodyOf(
        api.PUT("/api/v1/adapters/{id}/alias", {
          params: { path: { id: adapter.id } },
          body: { splits },
        }),
      ),
    onSuccess: () => queries.invalidateQueries({ queryKey: [tenantId, "adapters"] }),
  });
}

export function useDeleteAdapter() {
  const { api, tenantId } = useTenant();
  const queries = useQueryClient();
  return useMutation({
    mutationFn: async (id: string) => {
      await api.DELETE("/api/v1/adapters/{id}", { params: { path: { id } } });
    },
    onSuccess: () => queries.invalidateQueries({ queryKey: [tenantId, "adapters"] }),
  });
}
