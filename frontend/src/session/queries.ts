import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "react-router";
import { bodyOf, createApi } from "../api/client";
import { ApiError } from "../api/errors";
import type { Session } from "../api/types";
import { askPasskey } from "./passkey";

export const SESSION_KEY = ["session"];

/** The signed-in session; null when signed out. */
export function useSession() {
  return useQuery({
    queryKey: SESSION_KEY,
    queryFn: async (): Promise<Session | null> => {
      try {
        return await bodyOf(createApi(null).GET("/api/v1/session"));
      } catch (error) {
        if (error instanceof ApiError && (error.status === 401 || error.status === 403))
          return null;
        throw error;
      }
    },
    staleTime: 60_000,
  });
}

export function useSignIn() {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (body: { email: string; password: string }) =>
      bodyOf(createApi(null).POST("/api/v1/session", { body })),
    onSuccess: (session) => queries.setQueryData(SESSION_KEY, session),
  });
}

/** Whoever signs in next starts at their own first page, with nothing of this session left. */
export function useSignOut() {
  return useMutation({
    mutationFn: async () => {
      await createApi(null).DELETE("/api/v1/session");
    },
    onSuccess: () => location.assign("/"),
  });
}

export function useAskForReset() {
  return useMutation({
    mutationFn: async (body: { email: string }) => {
      await createApi(null).POST("/api/v1/account/password/reset", { body });
    },
  });
}

export function useNewPassword() {
  return useMutation({
    mutationFn: async (body: { token: string; password: string }) => {
      await createApi(null).POST("/api/v1/account/password/new", { body });
    },
  });
}

/** The second step: its success is the session itself. */
export function useSignInCode() {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (body: { code: string }) =>
      bodyOf(createApi(null).POST("/api/v1/session/code", { body })),
    onSuccess: (session) => queries.setQueryData(SESSION_KEY, session),
  });
}

export function useSignInPasskey() {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: async () => {
      const api = createApi(null);
      const { options } = await bodyOf(api.POST("/api/v1/session/passkey/start"));
      const body = { credential: await askPasskey(options) };
      return bodyOf(api.POST("/api/v1/session/passkey", { body }));
    },
    onSuccess: (session) => queries.setQueryData(SESSION_KEY, session),
  });
}

/** An operator is themself again; nothing of the tenant stays in the cache. */
export function useEndActing() {
  const queries = useQueryClient();
  const navigate = useNavigate();
  return useMutation({
    mutationFn: () => bodyOf(createApi(null).POST("/api/v1/operator/act-for/end")),
    onSuccess: (session) => {
      navigate("/tenants");
      queries.setQueryData(SESSION_KEY, session);
      queries.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== SESSION_KEY[0] });
    },
  });
}

/** What the account asks for besides the password; null where the refusal is another. */
export function factorsAskedBy(error: Error | null): string[] | null {
  if (!(error instanceof ApiError) || error.code !== "second_factor_required") return null;
  const { factors } = error.details;
  return Array.isArray(factors) ? factors.map(String) : [];
}
