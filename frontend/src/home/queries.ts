import { useQuery } from "@tanstack/react-query";
import { bodyOf } from "../api/client";
import { useTenant } from "../session/context";
import { roleCan } from "../session/permissions";
import { type Matter, mattersOf } from "./attention";

/** Under the keys that the pages themselves use: what one of them has read already is not asked for again. */
export function useParts() {
  const { api, tenantId, membership } = useTenant();
  const may = (action: Parameters<typeof roleCan>[1]) =>
    membership !== null && roleCan(membership.role, action);
  const balance = useQuery({
    queryKey: [tenantId, "balance"],
    enabled: may("billing:read"),
    queryFn: () => bodyOf(api.GET("/api/v1/balance")),
  });
  const adapters = useQuery({
    queryKey: [tenantId, "home", "adapters"],
    enabled: may("adapters:read"),
    queryFn: async () =>
      (await bodyOf(api.GET("/api/v1/adapters", { params: { query: { limit: 200 } } }))).data,
  });
  const keys = useQuery({
    queryKey: [tenantId, "home", "keys"],
    enabled: may("keys"),
    queryFn: async () =>
      (await bodyOf(api.GET("/api/v1/keys", { params: { query: { limit: 200 } } }))).data,
  });
  return { balance, adapters, keys };
}

/** null until everything that the role may read has been read. */
export function useAttention(): Matter[] | null {
  const { balance, adapters, keys } = useParts();
  if ([balance, adapters, keys].some(({ isLoading }) => isLoading)) return null;
  return mattersOf({ balance: balance.data, adapters: adapters.data, keys: keys.data });
}
