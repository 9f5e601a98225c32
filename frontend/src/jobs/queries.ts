import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { bodyOf } from "../api/client";
import type { Incoming, OperatorBatch } from "../api/types";
import { useWorkspace } from "../session/context";
import { useCursorList } from "../shared/useCursorList";

const POLL_MS = 5_000;

export function useJobs() {
  const { api } = useWorkspace();
  return useQuery({
    queryKey: ["operator", "jobs"],
    queryFn: () => bodyOf(api.GET("/api/v1/operator/jobs")),
    refetchInterval: POLL_MS,
    placeholderData: keepPreviousData,
  });
}

export type IncomingState = Incoming["state"];

export function useIncoming(state: IncomingState | "", search: string) {
  const { api } = useWorkspace();
  const filter = { ...(state ? { state } : {}), ...(search ? { search } : {}) };
  return useCursorList({
    queryKey: ["operator", "incoming", state, search],
    fetchPage: (page) =>
      bodyOf(api.GET("/api/v1/operator/incoming", { params: { query: { ...filter, ...page } } })),
    refetchInterval: POLL_MS,
  });
}

export function useBatches(status: OperatorBatch["status"] | "", search: string) {
  const { api } = useWorkspace();
  const filter = { ...(status ? { status } : {}), ...(search ? { search } : {}) };
  return useCursorList({
    queryKey: ["operator", "batches", status, search],
    fetchPage: (page) =>
      bodyOf(api.GET("/api/v1/operator/batches", { params: { query: { ...filter, ...page } } })),
    refetchInterval: POLL_MS,
  });
}
