import { useQueryClient } from "@tanstack/react-query";
import { useCallback } from "react";
import { bodyOf } from "../api/client";
import { useTenant } from "../session/context";

const SPARE_MS = 60_000;

/** Gives a short-lived key for the door, and a new one shortly before the old one ends. */
export function usePlaygroundKey(): () => Promise<string> {
  const { api, tenantId } = useTenant();
  const queries = useQueryClient();
  return useCallback(async () => {
    const issued = await queries.fetchQuery({
      queryKey: [tenantId, "playground-key"],
      queryFn: () => bodyOf(api.POST("/api/v1/playground/key")),
      staleTime: ({ state }) =>
        state.data ? new Date(state.data.expires_at).getTime() - SPARE_MS - state.dataUpdatedAt : 0,
    });
    return issued.key;
  }, [api, queries, tenantId]);
}
