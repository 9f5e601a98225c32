import { useMutation, useQuery } from "@tanstack/react-query";
import { bodyOf, createApi } from "../api/client";

/** What the bearer of the token is asked to join. */
export function useInvitation(token: string) {
  return useQuery({
    queryKey: ["invitation", token],
    queryFn: () => bodyOf(createApi(null).POST("/api/v1/invitations/look", { body: { token } })),
    retry: false,
  });
}

/** Afterwards the console is opened afresh: it then knows the new tenant. */
export function useJoin() {
  return useMutation({
    mutationFn: (body: { token: string; password?: string }) =>
      bodyOf(createApi(null).POST("/api/v1/invitations/accept", { body })),
    onSuccess: () => location.assign("/"),
  });
}
