import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { bodyOf } from "../api/client";
import { allRows } from "../api/pages";
import type { Level } from "../api/types";
import { useTenant, useWorkspace } from "../session/context";
import { limitCalls } from "./calls";
import type { LimitChanges } from "./form";

const REFRESH_MS = 15_000;

/** Whose limits a tenant's people set; those of the account are the operator's. */
export type Settled = Exclude<Level["level"], "tenant">;

export interface Whose {
  level: Level["level"];
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

function useKey() {
  return [useWorkspace().membership?.tenant.id ?? "operator", "limits"];
}

/** Read anew for each form: one that began with what was once there would set it again. */
export function useLimitsOf({ level, id }: Whose) {
  const { api } = useWorkspace();
  return useQuery({
    queryKey: [...useKey(), level, id],
    queryFn: () => limitCalls(api, { level, id }).read(),
    gcTime: 0,
    refetchOnWindowFocus: false,
  });
}

export function useSetLimits(whose: Whose) {
  const { api } = useWorkspace();
  const queries = useQueryClient();
  const queryKey = useKey();
  return useMutation({
    mutationFn: (body: LimitChanges) => limitCalls(api, whose).write(body),
    onSuccess: () => queries.invalidateQueries({ queryKey }),
  });
}
