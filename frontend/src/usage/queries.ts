import { keepPreviousData, useMutation, useQuery } from "@tanstack/react-query";
import { bodyOf } from "../api/client";
import { useTenant } from "../session/context";
import { roleCan } from "../session/permissions";
import { saveFile } from "../shared/saveFile";
import { useCursorList } from "../shared/useCursorList";
import type { Range, Step } from "./range";

export type Grouping = "adapter" | "key" | "member" | "model";
/** The one group that is looked at, by what it is a group of. */
export type Only = Partial<Record<Grouping, string>>;
export type Outcome = "any" | "completed" | "cancelled" | "failed";

const POLL_MS = 15_000;
/** Of a page of generations: what lies below the list stays in reach. */
const ROWS = 25;

function spanOf({ from, to, tz }: Range) {
  return { from, to, tz };
}

export function useUsage(range: Range, groupBy: Grouping | Step, only: Only = {}) {
  const { api, tenantId, live } = useTenant();
  const query = { ...spanOf(range), ...only, group_by: groupBy };
  return useQuery({
    queryKey: [tenantId, "usage", query],
    queryFn: () => bodyOf(api.GET("/api/v1/usage", { params: { query } })),
    placeholderData: keepPreviousData,
    refetchInterval: live ? false : POLL_MS,
  });
}

export function useTimeseries(range: Range, split: Grouping, only: Only = {}) {
  const { api, tenantId, live } = useTenant();
  const query = { ...spanOf(range), ...only, step: range.step, split };
  return useQuery({
    queryKey: [tenantId, "timeseries", query],
    queryFn: () => bodyOf(api.GET("/api/v1/usage/timeseries", { params: { query } })),
    placeholderData: keepPreviousData,
    refetchInterval: live ? false : POLL_MS,
  });
}

export function useComposition(range: Range, only: Only = {}) {
  const { api, tenantId, live } = useTenant();
  const query = { ...spanOf(range), ...only };
  return useQuery({
    queryKey: [tenantId, "usage", "composition", query],
    queryFn: () => bodyOf(api.GET("/api/v1/usage/composition", { params: { query } })),
    placeholderData: keepPreviousData,
    refetchInterval: live ? false : POLL_MS,
  });
}

export function useLatency(range: Range) {
  const { api, tenantId, live } = useTenant();
  const query = spanOf(range);
  return useQuery({
    queryKey: [tenantId, "usage", "latency", query],
    queryFn: () => bodyOf(api.GET("/api/v1/usage/latency", { params: { query } })),
    placeholderData: keepPreviousData,
    refetchInterval: live ? false : POLL_MS,
  });
}

export function useGenerations(range: Range, only: Only, outcome: Outcome) {
  const { api, tenantId } = useTenant();
  const query = { ...spanOf(range), ...only, outcome, limit: ROWS };
  return useCursorList({
    queryKey: [tenantId, "usage", "generations", query],
    fetchPage: (page) =>
      bodyOf(api.GET("/api/v1/usage/generations", { params: { query: { ...query, ...page } } })),
  });
}

export function useGeneration(id: string) {
  const { api, tenantId } = useTenant();
  return useQuery({
    queryKey: [tenantId, "generation", id],
    queryFn: () =>
      bodyOf(
        api.GET("/api/v1/usage/generations/{request_id}", { params: { path: { request_id: id } } }),
      ),
  });
}

/** Every generation of the filter, as a file. */
export function useGenerationsExport(range: Range, only: Only, outcome: Outcome) {
  const { api } = useTenant();
  return useMutation({
    mutationFn: async (as: "csv" | "jsonl") => {
      const query = { ...spanOf(range), ...only, outcome, as };
      const call = api.GET("/api/v1/usage/generations/export", {
        params: { query },
        parseAs: "blob",
      });
      saveFile(`veneer-generations-${range.from.slice(0, 10)}.${as}`, await bodyOf(call));
    },
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
