import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { bodyOf } from "../api/client";
import type { FullBatch } from "../api/types";
import { useTenant } from "../session/context";
import { useCursorList } from "../shared/useCursorList";
import type { BatchStatus } from "./statuses";

/** Lines finish without an event that tells. */
const POLL_MS = 5_000;

export function useBatches(status: BatchStatus | "") {
  const { api, tenantId } = useTenant();
  const filter = status ? { status } : {};
  return useCursorList({
    queryKey: [tenantId, "batches", "list", status],
    fetchPage: (page) =>
      bodyOf(api.GET("/api/v1/batches", { params: { query: { ...filter, ...page } } })),
    refetchInterval: POLL_MS,
  });
}

const at = (id: string) => ({ params: { path: { batch_id: id } } });

export function useBatch(id: string) {
  const { api, tenantId } = useTenant();
  return useQuery({
    queryKey: [tenantId, "batches", "one", id],
    queryFn: () => bodyOf(api.GET("/api/v1/batches/{batch_id}", at(id))),
    refetchInterval: ({ state }) => (state.data?.ended_at ? false : POLL_MS),
  });
}

/** `failed` is part of the key: more of them are read as they come. */
export function useFailedLines({ id, failed }: FullBatch) {
  const { api, tenantId } = useTenant();
  return useCursorList({
    queryKey: [tenantId, "batch-lines", id, failed],
    fetchPage: (page) =>
      bodyOf(
        api.GET("/api/v1/batches/{batch_id}/lines", {
          params: { path: { batch_id: id }, query: { state: "failed", ...page } },
        }),
      ),
  });
}

export function useCancelBatch() {
  const { api, tenantId } = useTenant();
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (id: string) => bodyOf(api.POST("/api/v1/batches/{batch_id}/cancel", at(id))),
    onSettled: () => queries.invalidateQueries({ queryKey: [tenantId, "batches"] }),
  });
}
