import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import type { Api } from "../api/client";
import { bodyOf } from "../api/client";
import { allRows } from "../api/pages";
import { useTenant } from "../session/context";
import type { LimitChanges } from "./form";

const REFRESH_MS = 15_000;

/** Whose limits can be set here; those of the account are the operator's. */
export type Settled = "member" | "key" | "adapter";

export interface Whose {
  level: Settled;
  id: string;
  label: string;
}

/** What is used changes with every request, so it is asked for again while the page is open. */
export function useLevels() {
  const { api, tenantId } = useTenant();
  return useQuery({
    queryKey: [tenantId, "limits"],
    queryFn: async () => (await bodyOf(api.GET("/api/v1/limits"))).data,
    refetchInterval: REFRESH_MS,
  });
}

/** Without pages: of all keys one is chosen. */
export function useAllKeys() {
  const { api, tenantId } = useTenant();
  return useQuery({
    queryKey: [tenantId, "keys", "all"],
    queryFn: () => allRows((query) => bodyOf(api.GET("/api/v1/keys", { params: { query } }))),
  });
}

export function useSetLimits({ level, id }: Whose) {
  const { api, tenantId } = useTenant();
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (body: LimitChanges) => send(api, level, id, body),
    onSuccess: () => queries.invalidateQueries({ queryKey: [tenantId, "limits"] }),
  });
}

function send(api: Api, level: Settled, id: string, body: LimitChanges) {
  if (level === "member") {
    const params = { path: { member_id: id } };
    return bodyOf(api.PUT("/api/v1/members/{member_id}/limits", { params, body }));
  }
  if (level === "key") {
    const params = { path: { key_id: id } };
    return bodyOf(api.PUT("/api/v1/keys/{key_id}/limits", { params, body }));
  }
  const params = { path: { adapter_id: id } };
  return bodyOf(api.PUT("/api/v1/adapters/{adapter_id}/limits", { params, body }));
}
