import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { bodyOf } from "../api/client";
import { useTenant, useWorkspace } from "../session/context";
import { createPasskey } from "../session/passkey";

const FACTORS = ["account", "second-factor"];

export function useFactors() {
  const { api } = useWorkspace();
  return useQuery({
    queryKey: FACTORS,
    queryFn: () => bodyOf(api.GET("/api/v1/account/second-factor")),
  });
}

/**
 * A new factor opens tenants that ask for one, and ends other sessions: all of it is read anew. Nobody waits for it: the
 * dialogue that shows the recovery codes must have them before what is read takes the dialogue away.
 */
function useReread() {
  const queries = useQueryClient();
  return () => {
    void queries.invalidateQueries({ queryKey: ["account"] });
    void queries.invalidateQueries({ queryKey: ["session"] });
  };
}

export function useStartTotp() {
  const { api } = useWorkspace();
  return useMutation({
    mutationFn: (password: string) =>
      bodyOf(api.POST("/api/v1/account/totp", { body: { password } })),
  });
}

export function useConfirmTotp() {
  const { api } = useWorkspace();
  return useMutation({
    mutationFn: (body: { code: string }) =>
      bodyOf(api.POST("/api/v1/account/totp/confirm", { body })),
    onSuccess: useReread(),
  });
}

export function useEndTotp() {
  const { api } = useWorkspace();
  return useMutation({
    mutationFn: async (password: string) => {
      await api.POST("/api/v1/account/totp/end", { body: { password } });
    },
    onSuccess: useReread(),
  });
}

export function useRenewRecoveryCodes() {
  const { api } = useWorkspace();
  return useMutation({
    mutationFn: (password: string) =>
      bodyOf(api.POST("/api/v1/account/recovery-codes", { body: { password } })),
    onSuccess: useReread(),
  });
}

export function useStartPasskey() {
  const { api } = useWorkspace();
  return useMutation({
    mutationFn: (password: string) =>
      bodyOf(api.POST("/api/v1/account/passkeys/start", { body: { password } })),
  });
}

export function useAddPasskey() {
  const { api } = useWorkspace();
  return useMutation({
    mutationFn: async ({ name, options }: { name: string; options: Record<string, unknown> }) => {
      const credential = await createPasskey(options);
      return bodyOf(api.POST("/api/v1/account/passkeys", { body: { name, credential } }));
    },
    onSuccess: useReread(),
  });
}

export function useRemovePasskey(id: string) {
  const { api } = useWorkspace();
  return useMutation({
    mutationFn: async (password: string) => {
      const path = { passkey_id: id };
      await api.POST("/api/v1/account/passkeys/{passkey_id}/remove", {
        params: { path },
        body: { password },
      });
    },
    onSuccess: useReread(),
  });
}

export function useTenantRequires() {
  const { api, tenantId } = useTenant();
  return useQuery({
    queryKey: [tenantId, "second-factor"],
    queryFn: () => bodyOf(api.GET("/api/v1/tenant/second-factor")),
  });
}

export function useSetTenantRequires() {
  const { api, tenantId } = useTenant();
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (is_required: boolean) =>
      bodyOf(api.PUT("/api/v1/tenant/second-factor", { body: { is_required } })),
    onSuccess: (answer) => queries.setQueryData([tenantId, "second-factor"], answer),
  });
}
