import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { bodyOf } from "../api/client";
import { useTenant } from "../session/context";
import { roleCan } from "../session/permissions";
import type { Range } from "./range";

export type Grouping = "adapter" | "key";

const POLL_MS = 15_000;

export function useUsage({ from, to }: Range, groupBy: Grouping) {
  const { api, tenantId, live } = useTenant();
  return useQuery({
    queryKey: [tenantId, "usage", from, to, groupBy],
    queryFn: () =>
      bodyOf(
        api.GET("/api/v1/usage", { params: { query: { from, to, group_by: groupBy, tz: "UTC" } } }),
      ),
    placeholderData: keepPreviousData,
    refetchInterval: live ? false : POLL_MS,
  });
}

export function useTimeseries({ from, to, step }: Range, split: Grouping) {
  const { api, tenantId, live } = useTenant();
  return useQuery({
    queryKey: [tenantId, "timeseries", from, to, step, split],
    queryFn: () =>
      bodyOf(api.GET("/api/v1/usage/timeseries", { params: { query: { from, to, step, split } } })),
    placeholderData: keepPreviousData,
    refetchInterval: live ? false : POLL_MS,
  });
}

export function useBalance() {
  const { api, tenantId, membership } = useTenant();
  return useQuery({
    queryKey: [tenantId, "balance"],
    enabled: membership !== null && roleCan(membership.role, "billing:read"),
    queryFn: () => bodyOf(api.GET("/api/v1/balance")),
  });
}
