import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";
import { bodyOf } from "../api/client";
import { FLEET } from "../api/live";
import { useWorkspace } from "../session/context";

const POLL_MS = 2_000;

/** The engines as they are now: a frame a second from the socket, or asked for while that is away. */
export function useFleet() {
  const { api, live, watchFleet } = useWorkspace();
  useEffect(() => watchFleet(), [watchFleet]);
  return useQuery({
    queryKey: FLEET,
    queryFn: () => bodyOf(api.GET("/api/v1/operator/fleet")),
    refetchInterval: live ? false : POLL_MS,
    refetchOnWindowFocus: !live,
  });
}

export type Deed = "drain" | "resume" | "restart";

export function useReplicaDeed(replica: string) {
  const { api } = useWorkspace();
  const queries = useQueryClient();
  return useMutation({
    mutationFn: async (deed: Deed) => {
      const path = { params: { path: { replica } } };
      if (deed === "drain") await api.POST("/api/v1/operator/fleet/{replica}/drain", path);
      if (deed === "resume") await api.POST("/api/v1/operator/fleet/{replica}/resume", path);
      if (deed === "restart") await api.POST("/api/v1/operator/fleet/{replica}/restart", path);
    },
    onSuccess: () => queries.invalidateQueries({ queryKey: FLEET }),
  });
}
