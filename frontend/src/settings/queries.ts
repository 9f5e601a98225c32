import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { bodyOf } from "../api/client";
import type { SingleSignOnChoice } from "../api/types";
import { useTenant } from "../session/context";

export function useSingleSignOn() {
  const { api, tenantId } = useTenant();
  return useQuery({
    queryKey: [tenantId, "single-sign-on"],
    queryFn: () => bodyOf(api.GET("/api/v1/tenant/single-sign-on")),
  });
}

function useReread() {
  const { tenantId } = useTenant();
  const queries = useQueryClient();
  return () => queries.invalidateQueries({ queryKey: [tenantId, "single-sign-on"] });
}

export function useSetProvider() {
  const { api } = useTenant();
  return useMutation({
    mutationFn: (body: SingleSignOnChoice) =>
      bodyOf(api.PUT("/api/v1/tenant/single-sign-on", { body })),
    onSuccess: useReread(),
  });
}

export function useRemoveProvider() {
  const { api } = useTenant();
  return useMutation({
    mutationFn: async () => {
      await api.DELETE("/api/v1/tenant/single-sign-on");
    },
    onSuccess: useReread(),
  });
}

export function useAddDomain() {
  const { api } = useTenant();
  return useMutation({
    mutationFn: (name: string) =>
      bodyOf(api.POST("/api/v1/tenant/single-sign-on/domains", { body: { name } })),
    onSuccess: useReread(),
  });
}

export function useConfirmDomain(id: string) {
  const { api } = useTenant();
  return useMutation({
    mutationFn: () =>
      bodyOf(
        api.POST("/api/v1/tenant/single-sign-on/domains/{domain_id}/confirm", {
          params: { path: { domain_id: id } },
        }),
      ),
    onSuccess: useReread(),
  });
}

export function useRemoveDomain(id: string) {
  const { api } = useTenant();
  return useMutation({
    mutationFn: async () => {
      await api.DELETE("/api/v1/tenant/single-sign-on/domains/{domain_id}", {
        params: { path: { domain_id: id } },
      });
    },
    onSuccess: useReread(),
  });
}
