import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { type Api, bodyOf } from "../api/client";
import { allRows } from "../api/pages";
import type { Adapter, AliasChoice } from "../api/types";
import { useTenant } from "../session/context";

const POLL_MS = 3_000;

export function readAdapters(api: Api): Promise<Adapter[]> {
  return allRows((query) => bodyOf(api.GET("/api/v1/adapters", { params: { query } })));
}

export function useAdapters() {
  const { api, tenantId, live } = useTenant();
  return useQuery({
    queryKey: [tenantId, "adapters"],
    queryFn: () => readAdapters(api),
    refetchInterval: live ? false : POLL_MS,
  });
}

export function useSetAlias(adapter: Adapter) {
  const { api, tenantId } = useTenant();
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (body: AliasChoice) =>
      bodyOf(
        api.PUT("/api/v1/adapters/{adapter_id}/alias", {
          params: { path: { adapter_id: adapter.id } },
          body,
        }),
      ),
    onSuccess: () => queries.invalidateQueries({ queryKey: [tenantId, "adapters"] }),
  });
}

export function useSetPin(adapter: Adapter) {
  const { api, tenantId } = useTenant();
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (pinned: boolean) =>
      bodyOf(
        api.PUT("/api/v1/adapters/{adapter_id}/pin", {
          params: { path: { adapter_id: adapter.id } },
          body: { pinned },
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
      await api.DELETE("/api/v1/adapters/{adapter_id}", { params: { path: { adapter_id: id } } });
    },
    onSuccess: () => queries.invalidateQueries({ queryKey: [tenantId, "adapters"] }),
  });
}
