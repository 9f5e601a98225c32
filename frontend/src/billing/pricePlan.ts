import { useQuery } from "@tanstack/react-query";
import { bodyOf } from "../api/client";
import type { components } from "../api/schema";
import { useTenant } from "../session/context";

type Shapes = components["schemas"];
export type Offer = Shapes["Offer"];
export type Agreement = Shapes["Agreement"];

/** What a million tokens costs now, of each model that may be called. */
export function usePricePlan() {
  const { api, tenantId } = useTenant();
  return useQuery({
    queryKey: [tenantId, "price-plan"],
    queryFn: async () => (await bodyOf(api.GET("/api/v1/price-plan"))).data,
  });
}

/** What was agreed beyond prices; null: nothing. */
export function useAgreement() {
  const { api, tenantId } = useTenant();
  return useQuery({
    queryKey: [tenantId, "agreement"],
    queryFn: async () => (await bodyOf(api.GET("/api/v1/agreement"))).agreement,
  });
}
