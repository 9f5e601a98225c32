import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { bodyOf } from "../api/client";
import type { Scope } from "../api/types";
import { useTenant } from "../session/context";

export interface NewKey {
  name: string;
  scopes: Scope[];
  expires_at: string | null;
  allowed_models: string[] | null;
  allowed_networks: string[] | null;
}

export interface KeyChange {
  id: string;
  name: string;
  allowed_models: string[] | null;
  allowed_networks: string[] | null;
}

export function useKeys() {
  const { api, tenantId, live } = useTenant();
  return useQuery({
    queryKey: [tenantId, "keys"],
    queryFn: async () => (await bodyOf(api.GET("/api/v1/keys"))).data,
    refetchInterval: live ? false : 10_000,
  });
}

export function useIssueKey() {
  const { api, tenantId } = useTenant();
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (body: NewKey) => bodyOf(api.POST("/api/v1/keys", { body })),
    onSuccess: () => queries.invalidateQueries({ queryKey: [tenantId, "keys"] }),
  });
}

export function useRevokeKey() {
  const { api, tenantId } = useTenant();
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (id: string) =>
      bodyOf(api.POST("/api/v1/keys/{key_id}/revoke", { params: { path: { key_id: id } } })),
    onSuccess: () => queries.invalidateQueries({ queryKey: [tenantId, "keys"] }),
  });
}

export function useChangeKey() {
  const { api, tenantId } = useTenant();
  const queries = useQueryClient();
  return useMutation({
    mutationFn: ({ id, ...body }: KeyChange) =>
      bodyOf(api.PATCH("/api/v1/keys/{key_id}", { params: { path: { key_id: id } }, body })),
    onSuccess: () => queries.invalidateQueries({ queryKey: [tenantId, "keys"] }),
  });
}

export function useRotateKey() {
  const { api, tenantId } = useTenant();
  const queries = useQueryClient();
  return useMutation({
    mutationFn: ({ id, ...body }: { id: string; grace_seconds: number }) =>
      bodyOf(api.POST("/api/v1/keys/{key_id}/rotate", { params: { path: { key_id: id } }, body })),
    onSuccess: () => queries.invalidateQueries({ queryKey: [tenantId, "keys"] }),
  });
}
