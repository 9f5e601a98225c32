import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { bodyOf } from "../api/client";
import { useWorkspace } from "../session/context";

const COMPANIES = ["account", "companies"];

export function useCompanies() {
  const { api } = useWorkspace();
  return useQuery({
    queryKey: COMPANIES,
    queryFn: async () => (await bodyOf(api.GET("/api/v1/account/companies"))).data,
  });
}

/** The browser leaves for the company, and comes back connected. */
export function useConnect(tenant: string) {
  const { api } = useWorkspace();
  return useMutation({
    mutationFn: (password: string) =>
      bodyOf(api.POST("/api/v1/account/companies", { body: { tenant, password } })),
    onSuccess: ({ url }) => location.assign(url),
  });
}

export function useDisconnect(linkId: string) {
  const { api } = useWorkspace();
  const queries = useQueryClient();
  return useMutation({
    mutationFn: async (password: string) => {
      await api.POST("/api/v1/account/companies/{link_id}/remove", {
        params: { path: { link_id: linkId } },
        body: { password },
      });
    },
    onSuccess: () => queries.invalidateQueries({ queryKey: COMPANIES }),
  });
}
