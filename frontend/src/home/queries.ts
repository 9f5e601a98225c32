import { useQuery } from "@tanstack/react-query";
import { bodyOf } from "../api/client";
import { useTenant } from "../session/context";
import { roleCan } from "../session/permissions";
import { useBalance } from "../usage/queries";
import { type Matter, mattersOf } from "./attention";

/** Under the keys that events make stale, so that what needs a look comes and goes by itself. */
export function useParts() {
  const { api, tenantId, membership } = useTenant();
  const may = (action: Parameters<typeof roleCan>[1]) =>
    membership !== null && roleCan(membership.role, action);
  const balance = useBalance();
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
