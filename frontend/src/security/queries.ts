import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { bodyOf } from "../api/client";
import { allRows } from "../api/pages";
import { useWorkspace } from "../session/context";

const SESSIONS = ["account", "sessions"];

export function useSessions() {
  const { api } = useWorkspace();
  return useQuery({
    queryKey: SESSIONS,
    queryFn: () =>
      allRows((query) => bodyOf(api.GET("/api/v1/account/sessions", { params: { query } }))),
  });
}

export function useRereadSessions() {
  const queries = useQueryClient();
  return () => queries.invalidateQueries({ queryKey: SESSIONS });
}

export function useEndSession() {
  const { api } = useWorkspace();
  return useMutation({
    mutationFn: async (id: string) => {
      const path = { session_id: id };
      await api.DELETE("/api/v1/account/sessions/{session_id}", { params: { path } });
    },
    onSuccess: useRereadSessions(),
  });
}

export function useEndOthers() {
  const { api } = useWorkspace();
  return useMutation({
    mutationFn: () => bodyOf(api.POST("/api/v1/account/sessions/end-others")),
    onSuccess: useRereadSessions(),
  });
}

export function useChangePassword() {
  const { api } = useWorkspace();
  return useMutation({
    mutationFn: async (body: { old_password: string; new_password: string }) => {
      await api.PUT("/api/v1/account/password", { body });
    },
    onSuccess: useRereadSessions(),
  });
}
