import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { bodyOf } from "../api/client";
import { allRows } from "../api/pages";
import type { components } from "../api/schema";
import { useWorkspace } from "../session/context";

type Shapes = components["schemas"];
export type NewTenant = Shapes["CreateTenantRequest"];
export type NewPrice = Shapes["SetPriceRequest"];
export type NewGrant = Shapes["GiveGrantRequest"];

const TENANTS = ["operator", "tenants"];
const PRICES = ["operator", "prices"];

function useRefreshing<Input, Output>(key: string[], send: (input: Input) => Promise<Output>) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: send,
    onSuccess: () => queries.invalidateQueries({ queryKey: key }),
  });
}

export function useTenants() {
  const { api } = useWorkspace();
  return useQuery({
    queryKey: TENANTS,
    queryFn: () =>
      allRows((query) => bodyOf(api.GET("/api/v1/operator/tenants", { params: { query } }))),
  });
}

export function useCreateTenant() {
  const { api } = useWorkspace();
  return useRefreshing(TENANTS, (body: NewTenant) =>
    bodyOf(api.POST("/api/v1/operator/tenants", { body })),
  );
}

export function useGiveGrant(tenantId: string) {
  const { api } = useWorkspace();
  return useRefreshing(["operator", "limits"], (body: NewGrant) =>
    bodyOf(
      api.POST("/api/v1/operator/tenants/{tenant_id}/grants", {
        params: { path: { tenant_id: tenantId } },
        body,
      }),
    ),
  );
}

export function usePrices() {
  const { api } = useWorkspace();
  return useQuery({
    queryKey: PRICES,
    queryFn: () =>
      allRows((query) => bodyOf(api.GET("/api/v1/operator/prices", { params: { query } }))),
  });
}

export function useSetPrice() {
  const { api } = useWorkspace();
  return useRefreshing(PRICES, (body: NewPrice) =>
    bodyOf(api.POST("/api/v1/operator/prices", { body })),
  );
}

/** What a price would have made of last month's usage. */
export function usePricePreview(price: NewPrice) {
  const { api } = useWorkspace();
  return useQuery({
    queryKey: [...PRICES, "preview", price],
    queryFn: () => bodyOf(api.POST("/api/v1/operator/prices/preview", { body: price })),
  });
}
