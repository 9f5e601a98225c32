import { useMutation, useQueryClient } from "@tanstack/react-query";
import { bodyOf } from "../api/client";
import { messageOf } from "../api/errors";
import type { IssuedKey, Scope } from "../api/types";
import { useTenant } from "../session/context";
import { useCursorList } from "../shared/useCursorList";

export interface NewKey {
  name: string;
  scopes: Scope[];
  expires_at: string | null;
  allowed_models: string[] | null;
  allowed_networks: string[] | null;
  /** An amount; null: none of its own. */
  monthly_budget: string | null;
}

/** budgetProblem: why the key has not got its budget; null: it has, or none was wanted. */
export type Issued = IssuedKey & { budgetProblem: string | null };

export interface KeyChange {
  id: string;
  name: string;
  allowed_models: string[] | null;
  allowed_networks: string[] | null;
}

export interface KeyFilter {
  q?: string;
  state?: "active" | "expired" | "revoked";
}

const POLL_MS = 10_000;

export function useKeys(filter: KeyFilter) {
  const { api, tenantId, live } = useTenant();
  return useCursorList({
    queryKey: [tenantId, "keys", "list", filter],
    fetchPage: (page) =>
      bodyOf(api.GET("/api/v1/keys", { params: { query: { ...filter, ...page } } })),
    refetchInterval: live ? false : POLL_MS,
  });
}

function useChange<Input, Output>(change: (input: Input) => Promise<Output>) {
  const { tenantId } = useTenant();
  const queries = useQueryClient();
  return useMutation({
    mutationFn: change,
    onSuccess: () => queries.invalidateQueries({ queryKey: [tenantId, "keys"] }),
  });
}

const at = (id: string) => ({ params: { path: { key_id: id } } });

export function useIssueKey() {
  const { api } = useTenant();
  return useChange(async ({ monthly_budget, ...body }: NewKey): Promise<Issued> => {
    const issued = await bodyOf(api.POST("/api/v1/keys", { body }));
    if (monthly_budget === null) return { ...issued, budgetProblem: null };
    const limits = api.PUT("/api/v1/keys/{key_id}/limits", {
      ...at(issued.id),
      body: { monthly_budget },
    });
    // The key is there and shown this once, whatever becomes of its budget.
    const budgetProblem = await limits.then(() => null, messageOf);
    return { ...issued, budgetProblem };
  });
}

export function useRevokeKey() {
  const { api } = useTenant();
  return useChange((id: string) => bodyOf(api.POST("/api/v1/keys/{key_id}/revoke", at(id))));
}

export function useChangeKey() {
  const { api } = useTenant();
  return useChange(({ id, ...body }: KeyChange) =>
    bodyOf(api.PATCH("/api/v1/keys/{key_id}", { ...at(id), body })),
  );
}

export function useRotateKey() {
  const { api } = useTenant();
  return useChange(({ id, ...body }: { id: string; grace_seconds: number }) =>
    bodyOf(api.POST("/api/v1/keys/{key_id}/rotate", { ...at(id), body })),
  );
}
