import { useQuery } from "@tanstack/react-query";
import { bodyOf } from "../api/client";
import { useWorkspace } from "../session/context";

const HEALTH_EVERY_MS = 15_000;

export function useBaseModels() {
  const { api } = useWorkspace();
  return useQuery({
    queryKey: ["operator", "base-models"],
    queryFn: async () => (await bodyOf(api.GET("/api/v1/operator/base-models"))).data,
  });
}

export function useHealth() {
  const { api } = useWorkspace();
  return useQuery({
    queryKey: ["operator", "health"],
    queryFn: () => bodyOf(api.GET("/api/v1/operator/health")),
    refetchInterval: HEALTH_EVERY_MS,
  });
}
