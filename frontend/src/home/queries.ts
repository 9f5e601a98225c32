import { useQuery } from "@tanstack/react-query";
import { bodyOf } from "../api/client";
import { useTenant } from "../session/context";
import { roleCan } from "../session/permissions";
import { mattersOf } from "./attention";

/** What is used of limits changes with every request. */
const REFRESH_MS = 15_000;

/** Under the keys that events make stale, so that what needs a look comes and goes by itself. */
export function useParts() {
  const { api, tenantId, membership } = useTenant();
  const may = (action: Parameters<typeof roleCan>[1]) =>
    membership !== null && roleCan(membership.role, action);
  const near = useQuery({
    queryKey: [tenantId, "limits", "near"],
    queryFn: async () => (await bodyOf(api.GET("/api/v1/limits/near"))).data,
    refetchInterval: REFRESH_MS,
  });
  const credits = useQuery({
    queryKey: [tenantId, "credits", "home"],
    enabled: may("billing:read"),
    queryFn: async () =>
      (await bodyOf(api.GET("/api/v1/grants", { params: { query: { limit: 200 } } }))).data,
  });
  const adapters = useQuery({
    queryKey: [tenantId, "adapters", "home"],
    enabled: may("adapters:read"),
    queryFn: async () =>
      (await bodyOf(api.GET("/api/v1/adapters", { params: { query: { limit: 200 } } }))).data,
  });
  const keys = useQuery({
    queryKey: [tenantId, "keys", "home"],
    enabled: may("keys"),
    queryFn: async () =>
      (
        await bodyOf(
          api.GET("/api/v1/keys", { params: { query: { limit: 200, state: "active" } } }),
        )
      ).data,
  });
  return { near, credits, adapters, keys };
}

/** matters: null until everything that the role may read has been read. */
export function useAttention() {
  const parts = useParts();
  const queries = Object.values(parts);
  const { near, credits, adapters, keys } = parts;
  const matters = queries.some(({ isLoading }) => isLoading)
    ? null
    : mattersOf({
        near: near.data,
        credits: credits.data,
        adapters: adapters.data,
        keys: keys.data,
      });
  return { matters, failed: queries.find(({ isError }) => isError) };
}
